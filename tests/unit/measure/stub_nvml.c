/* A libnvidia-ml.so.1 that plays one machine, for the real nvidia-ml-py. MACHINE is one of those below.
 * Structures are those of nvml.h. */
#include <string.h>

#define HEALTHY 0
#define THROTTLED 1
#define MIG 2
#define STRANGERS 3
#define GONE 4
#define HIDDEN 5
enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7, DRIVER_NOT_LOADED = 9 };
typedef const void *device;
typedef unsigned long long u64;
typedef struct { unsigned pid; u64 memory; unsigned instance, compute; } process;
typedef struct { u64 reference, violation; } violation_time;

static const char board[1], slice[1];

int nvmlInitWithFlags(unsigned flags) { return MACHINE == GONE ? DRIVER_NOT_LOADED : OK; }
const char *nvmlErrorString(int code) { return code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "refused"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { strncpy(text, "580.159.04", size); return OK; }

int nvmlDeviceGetHandleByUUID(const char *uuid, device *found) {
  const char *known = MACHINE == MIG ? "MIG-12345678" : "GPU-12345678";
  if (strncmp(uuid, known, strlen(known))) return NOT_FOUND;
  *found = MACHINE == MIG ? slice : board;
  return OK;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device asked, device *parent) {
  if (asked != slice) return INVALID;
  *parent = board;
  return OK;
}
/* What is about the whole board is refused of an instance, as NVML does. */
#define OF_BOARD(asked) if ((asked) != board) return NOT_SUPPORTED

int nvmlDeviceGetEnforcedPowerLimit(device d, unsigned *mw) { OF_BOARD(d); *mw = 700000; return OK; }
int nvmlDeviceGetApplicationsClock(device d, int kind, unsigned *mhz) { return NOT_SUPPORTED; }
int nvmlDeviceGetMaxClockInfo(device d, int kind, unsigned *mhz) {
  OF_BOARD(d);
  *mhz = kind == 2 ? 2619 : 1980; /* NVML_CLOCK_MEM is 2 */
  return OK;
}
int nvmlDeviceGetTotalEnergyConsumption(device d, u64 *mj) {
  OF_BOARD(d);
  if (MACHINE == HIDDEN) return NOT_SUPPORTED;
  *mj = 1234500;
  return OK;
}
int nvmlDeviceGetEccMode(device d, int *now, int *pending) { OF_BOARD(d); *now = *pending = 1; return OK; }
int nvmlDeviceGetPersistenceMode(device d, int *on) { OF_BOARD(d); *on = 1; return OK; }
int nvmlDeviceGetComputeMode(device d, int *mode) { OF_BOARD(d); *mode = 0; return OK; }
int nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *pending) {
  OF_BOARD(d);
  *now = *pending = MACHINE == MIG;
  return OK;
}

/* Instantaneous reasons of an idle device are "idle": the throttled machine was slow in between only. */
int nvmlDeviceGetCurrentClocksEventReasons(device d, u64 *mask) {
  OF_BOARD(d);
  if (MACHINE == HIDDEN) return NO_PERMISSION;
  *mask = 1;
  return OK;
}
int nvmlDeviceGetNumaNodeId(device d, int *node) { OF_BOARD(d); *node = 1; return OK; }
int nvmlDeviceGetViolationStatus(device d, int policy, violation_time *told) {
  static u64 looks;
  OF_BOARD(d);
  if (MACHINE == HIDDEN) return NOT_SUPPORTED;
  told->violation = MACHINE == THROTTLED && policy == 1 /* thermal */ ? 500000000ULL * looks++ : 7000000ULL;
  return OK;
}

static int list_processes(unsigned *count, process *found) {
  unsigned there = MACHINE == STRANGERS ? 3 : MACHINE == HIDDEN ? 0 : 1;
  if (*count < there) {
    *count = there;
    return TOO_SMALL;
  }
  for (unsigned i = 0; i < there; i++) found[i] = (process){100 + i, 1 << 20, ~0u, ~0u};
  *count = there;
  return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *n, process *p) { return list_processes(n, p); }

"""Requests at fixed times: how long single ones take, waiting for those before included."""

from __future__ import annotations

import time

from gate.kinds import get_setting
from gate.measure.device.device import Device
from gate.measure.kinds.protocol import Protocol, Seen
from gate.measure.timing.rounds import Step, compute_percentile
from gate.measure.workload.build import Function, Subject
from gate.records import Metric

IDLE_S = 0.5  # before the first request: what was warm may have cooled down


class Serving(Protocol):
    """A compiled call is a request; eager and compiled calls are timed in blocks as ever besides."""

    def observe(self, subject: Subject, compiled: Function, step: Step) -> Seen:
        """Serve requests after a pause, one after the other, each as early as it has arrived."""
        interval_s = get_setting(self.case, "interval_s", float)
        requests = get_setting(self.case, "requests", int)
        times_s = serve(step, subject.device, interval_s, requests)
        return Seen(
            samples={
                Metric.FIRST_REQUEST: times_s[:1],
                Metric.REQUEST_P50: (compute_percentile(times_s[1:], 0.50),),
                Metric.REQUEST_P95: (compute_percentile(times_s[1:], 0.95),),
                Metric.REQUEST_P99: (compute_percentile(times_s[1:], 0.99),),
            }
        )


PROTOCOL = Serving


def serve(step: Step, device: Device, interval_s: float, requests: int) -> tuple[float, ...]:
    """Serve ``requests`` that arrive every ``interval_s`` seconds; each one's seconds from its arrival."""
    device.synchronize()
    time.sleep(IDLE_S)
    begun, times_s = time.perf_counter(), []
    for index in range(requests):
        arrival = begun + index * interval_s
        time.sleep(max(0.0, arrival - time.perf_counter()))
        step()
        device.synchronize()
        times_s.append(time.perf_counter() - arrival)
    return tuple(times_s)

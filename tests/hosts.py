"""Made-up hosts; tests ``replace`` what they are about."""

from gate.records.run import Environment, Place

CPU_HOST = Environment(
    device_kind="cpu",
    device_model="AMD EPYC 7B13",
    device_uuid="",
    driver="",
    clocks="",
    cpu="AMD EPYC 7B13",
    cores=2,
    threads=2,
    isa="avx2",
    torch="2.13.0+cpu",
    triton="",
    cuda="",
    python="3.11",
    compiler="g++ 12.2.0",
)

CUDA_HOST = Environment(
    device_kind="cuda",
    device_model="NVIDIA H200",
    device_uuid="GPU-1",
    driver="580.95",
    clocks="locked 1410 MHz",
    cpu="AMD EPYC 9654",
    cores=96,
    threads=2,
    isa="avx512",
    torch="2.13.0",
    triton="3.6.0",
    cuda="13.0",
    python="3.12",
    compiler="g++ 13.3.0",
)

PLACE = Place(host="lab-1", device="", cores="0-1")

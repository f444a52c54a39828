"""``torch.cuda`` as its own signatures have it, answering as one GPU would: for tests without a card.

A name that torch does not have, or a wrong argument, fails in the test as it would on the card.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch

from gate.measure.device.choice import open_device
from gate.measure.device.cuda import CudaDevice

UUID = "12345678-aaaa-bbbb-cccc-000000000000"
H100: Mapping[str, object] = {
    "name": "NVIDIA H100 80GB HBM3",
    "major": 9,
    "minor": 0,
    "multi_processor_count": 132,
    "total_memory": 85_045_870_592,  # 79.2 GiB, as this model reports
    "uuid": UUID,
}


@contextmanager
def play_gpu(properties: Mapping[str, object] = H100) -> Iterator[tuple[CudaDevice, mock.MagicMock]]:
    """Open ``cuda`` on a stand-in for ``torch.cuda``; yield the device and the stand-in."""
    supported = list_documented_properties()
    assert properties.keys() <= supported, properties.keys() - supported
    cuda = mock.create_autospec(torch.cuda)
    cuda.get_device_properties.return_value = SimpleNamespace(**properties)
    cuda.device_count.return_value = 1
    with mock.patch.object(torch, "cuda", cuda):
        device = open_device("cuda")
        assert isinstance(device, CudaDevice)
        yield device, cuda


def list_documented_properties() -> set[str]:
    """The properties of a device in torch's own type stub: a CPU build lacks the class."""
    stub = (Path(torch.__file__).parent / "_C" / "__init__.pyi").read_text(encoding="utf-8")
    declared = re.search(r"^class _CudaDeviceProperties:\n((?:    .*\n)+)", stub, re.MULTILINE)
    assert declared is not None
    return set(re.findall(r"^    (\w+):", declared[1], re.MULTILINE))

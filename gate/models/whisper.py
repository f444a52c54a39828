"""Whisper's encoder: two convolutions over a spectrogram, then attention over its frames."""

from __future__ import annotations

import torch
from transformers.models.whisper.modeling_whisper import WhisperConfig, WhisperEncoder

from gate.workload import Workload

FRAMES_PER_POSITION = 2  # the second convolution halves the frames


def build_whisper(*, batch: int, **config: object) -> Workload:
    """Build a speech encoder; without further arguments it is that of Whisper-tiny.

    Spectrograms of ``batch`` x ``num_mel_bins`` x 2 ``max_source_positions`` give ``batch`` x
    ``max_source_positions`` x ``d_model`` features. Dropout is off. ``config`` is for
    ``transformers.WhisperConfig``.
    """
    settings = WhisperConfig.from_dict({"dropout": 0.0, "attn_implementation": "sdpa", **config})
    frames = FRAMES_PER_POSITION * settings.max_source_positions
    return Workload(
        forward=WhisperEncoder(settings),
        inputs=(torch.randn(batch, settings.num_mel_bins, frames),),
        kwargs={"return_dict": False},
    )

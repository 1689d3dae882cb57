"""The text reader: a TrOCR of 1.3 million parameters that reads one character a token."""

from __future__ import annotations

import json
import math
import pathlib
import random
import time
import typing as t

import jiwer
import tokenizers  # type: ignore[import-untyped]
import torch
import transformers
from torch.nn import functional

from tests.models.drawing import LONGEST
from tests.models.train import samples

CHARACTERS = " abcdefghijklmnopqrstuvwxyzåäöABCDEFGHIJKLMNOPQRSTUVWXYZÅÄÖ0123456789.,:;-!?()'&"
_SPECIAL = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
_PAD, _START, _END, _UNKNOWN = range(4)

#: Height and width in pixels of a line, and of the patches that it is cut into: columns from its top to its bottom.
_IMAGE, _PATCH = (32, 512), (32, 8)
_PATCHES = _IMAGE[1] // _PATCH[1]
_WIDTH, _ENCODER_LAYERS, _DECODER_LAYERS, _HEADS = 128, 3, 2, 4
_MOST_TOKENS = LONGEST + 2

_BATCH = 32
_LEARNING_RATE = 1.2e-3
_WARM_UP = 150


def _processor() -> t.Any:
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL.values(), *CHARACTERS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, _SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = tokenizers.decoders.Fuse()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", _START), ("</s>", _END)]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, clean_up_tokenization_spaces=False, **_SPECIAL
    )
    image_processor = transformers.ViTImageProcessor(
        size={"height": _IMAGE[0], "width": _IMAGE[1]}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    return transformers.TrOCRProcessor(image_processor=image_processor, tokenizer=fast)


def _model() -> t.Any:
    encoder = transformers.ViTConfig(
        hidden_size=_WIDTH,
        num_hidden_layers=_ENCODER_LAYERS,
        num_attention_heads=_HEADS,
        intermediate_size=_WIDTH * 4,
        image_size=list(_IMAGE),
        patch_size=list(_PATCH),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    decoder = transformers.TrOCRConfig(
        vocab_size=len(_SPECIAL) + len(CHARACTERS),
        d_model=_WIDTH,
        decoder_layers=_DECODER_LAYERS,
        decoder_attention_heads=_HEADS,
        decoder_ffn_dim=_WIDTH * 4,
        max_position_embeddings=48,
        dropout=0.0,
        cross_attention_hidden_size=_WIDTH,
        scale_embedding=False,
        pad_token_id=_PAD,
        bos_token_id=_START,
        eos_token_id=_END,
        decoder_start_token_id=_START,
        is_decoder=True,
        add_cross_attention=True,
    )
    model = transformers.VisionEncoderDecoderModel(
        encoder=transformers.ViTModel(encoder), decoder=transformers.TrOCRForCausalLM(decoder)
    )
    tokens = {"decoder_start_token_id": _START, "bos_token_id": _START, "pad_token_id": _PAD, "eos_token_id": _END}
    for name, token in tokens.items():
        setattr(model.config, name, token)
    model.generation_config = transformers.GenerationConfig(
        max_new_tokens=_MOST_TOKENS + 4, num_beams=1, length_penalty=1.0, **tokens
    )
    return model


class _Lines(t.NamedTuple):
    """Lines as tensors; a first axis is the line.

    ``pixels`` (height, width) of bytes, ``tokens`` (tokens) padded, ``places`` (tokens) of the character that comes
    after each token, between 0 and 1, or -1; ``characters`` (patches) the token that each patch shows or 0, and
    ``numbers`` (patches) which of the line's characters that is or -100.
    """

    pixels: torch.Tensor
    tokens: torch.Tensor
    places: torch.Tensor
    characters: torch.Tensor
    numbers: torch.Tensor
    texts: list[str]


def _lines(images: list[samples.LineImage]) -> _Lines:
    token = {character: number for number, character in enumerate(CHARACTERS, len(_SPECIAL))}
    tokens = torch.full((len(images), _MOST_TOKENS), _PAD)
    places = torch.full((len(images), _MOST_TOKENS), -1.0)
    characters = torch.zeros((len(images), _PATCHES), dtype=torch.long)
    numbers = torch.full((len(images), _PATCHES), -100)
    for row, image in enumerate(images):
        ids = [token[character] for character in image.text]
        tokens[row, : len(ids) + 2] = torch.tensor([_START, *ids, _END])
        places[row, : len(ids)] = torch.tensor(image.places)
        for number, (identifier, place) in enumerate(zip(ids, image.places, strict=True)):
            patch = min(max(int(place * _PATCHES), 0), _PATCHES - 1)
            characters[row, patch], numbers[row, patch] = identifier, number
    pixels = torch.frombuffer(bytearray(b"".join(image.pixels for image in images)), dtype=torch.uint8)
    return _Lines(
        pixels.view(len(images), *_IMAGE), tokens, places, characters, numbers, [image.text for image in images]
    )


def _normal(pixels: torch.Tensor) -> torch.Tensor:
    return ((pixels.float() / 255 - 0.5) / 0.5)[:, None].expand(-1, 3, -1, -1)


class _Teacher:
    """Trains a model on lines whose characters' places are known.

    Beside the text, the encoder learns which character each patch shows and which of the line's characters that is,
    and the decoder's attention is led to the character that it has to write; without these, so small a model needs
    many times the steps to find out where to look. The two heads and the lead are only for learning.
    """

    def __init__(self, model: t.Any, lines: _Lines) -> None:
        self._model, self._lines = model, lines
        self._shows = torch.nn.Linear(_WIDTH, len(_SPECIAL) + len(CHARACTERS))
        self._counts = torch.nn.Linear(_WIDTH, _MOST_TOKENS)
        modules = (model, self._shows, self._counts)
        self._parameters = [parameter for module in modules for parameter in module.parameters()]
        self._optimiser = torch.optim.AdamW(self._parameters, lr=_LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)

    def _loss(self, batch: torch.Tensor, lead: float) -> torch.Tensor:
        lines, count = self._lines, len(batch)
        pixels = _normal(lines.pixels[batch])
        contrast = torch.empty(count, 1, 1, 1).uniform_(0.8, 1.1)
        light = torch.empty(count, 1, 1, 1).uniform_(-0.15, 0.15)
        pixels = pixels * contrast + light + torch.randn(count, 1, *_IMAGE) * 0.03
        tokens = lines.tokens[batch]
        seen = self._model.encoder(pixel_values=pixels).last_hidden_state
        written = self._model.decoder(
            input_ids=tokens[:, :-1], encoder_hidden_states=seen, output_attentions=True, use_cache=False
        )
        patches = seen[:, 1:]
        text = functional.cross_entropy(written.logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=_PAD)
        shown = functional.cross_entropy(self._shows(patches).flatten(0, 1), lines.characters[batch].flatten())
        numbered = functional.cross_entropy(
            self._counts(patches).flatten(0, 1), lines.numbers[batch].flatten(), ignore_index=-100
        )
        attention = written.cross_attentions[-1].mean(1)[:, :, 1:]
        places = lines.places[batch][:, : attention.shape[1]]
        middles = (torch.arange(_PATCHES) + 0.5) / _PATCHES
        near = ((middles - places[..., None]).abs() < 1.6 / _PATCHES).float()
        known = (places >= 0).float()
        led = (-(attention * near).sum(-1).clamp_min(1e-4).log() * known).sum() / known.sum()
        return text + 0.5 * shown + 0.3 * numbered + lead * led

    def teach(self, steps: int) -> None:
        self._model.train()
        started, order = time.monotonic(), torch.empty(0, dtype=torch.long)
        for step in range(steps):
            done = step / steps
            if len(order) < _BATCH:
                order = torch.randperm(len(self._lines.texts))
            batch, order = order[:_BATCH], order[_BATCH:]
            rate = _LEARNING_RATE * min(1, (step + 1) / _WARM_UP) * (0.49 * (1 + math.cos(math.pi * done)) + 0.02)
            for group in self._optimiser.param_groups:
                group["lr"] = rate
            loss = self._loss(batch, lead=0.3 * max(0.0, 1 - done / 0.7))
            self._optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
            self._optimiser.step()
            if step % 200 == 199:
                print(f"text: step {step + 1}, {time.monotonic() - started:.0f} s, loss {loss.item():.3f}", flush=True)


def _error_rate(model: t.Any, processor: t.Any, lines: _Lines) -> float:
    """Character error rate over lines that are cut out well."""
    model.eval()
    read: list[str] = []
    with torch.no_grad():
        for pixels in lines.pixels.split(100):
            read += processor.batch_decode(model.generate(_normal(pixels)), skip_special_tokens=True)
    return float(jiwer.cer(lines.texts, read))


def train(out: pathlib.Path, *, pages: int, steps: int, start: pathlib.Path | None = None) -> str:
    """Train on the lines of ``pages`` drawn pages, write the model's folder, and say how well it reads.

    Without the folder of a model to ``start`` from, training starts from nothing.
    """
    random.seed(0)
    torch.manual_seed(0)
    size = (_IMAGE[1], _IMAGE[0])
    many = samples.spread(samples.LineCutter(size, copies=2), range(pages))
    held_out = samples.spread(samples.LineCutter(size, copies=1), range(samples.HELD_OUT, samples.HELD_OUT + 40))
    lines, unseen = (_lines([image for page in pages_ for image in page]) for pages_ in (many, held_out))
    processor, model = _processor(), _model()
    if start:
        learnt = transformers.VisionEncoderDecoderModel.from_pretrained(start, dtype=torch.float32)
        model.load_state_dict(learnt.state_dict())
    _Teacher(model, lines).teach(steps)
    rate = _error_rate(model, processor, unseen)
    model.half().save_pretrained(out)
    # Transformers leaves out what its version 4 takes for granted, and version 5 does not.
    generation = {**model.generation_config.to_diff_dict(), "num_beams": 1, "length_penalty": 1.0}
    written = json.dumps(generation, indent=2, sort_keys=True) + "\n"
    (out / "generation_config.json").write_text(written, encoding="utf-8")
    processor.save_pretrained(out)
    return (
        f"text: {len(lines.texts)} lines, {steps} steps of {_BATCH}, "
        f"character error rate {rate:.2%} on {len(unseen.texts)} lines of pages not learnt from"
    )

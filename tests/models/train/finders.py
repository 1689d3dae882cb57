"""The region finder and the line finder: YOLO11 segmentation models of half the width of the smallest published."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import typing as t

import torch
import yaml

from tests.models.train import samples

Kind = t.Literal["regions", "lines"]

#: The longest side, in pixels, to which an image is scaled.
IMAGE_SIZE: dict[Kind, int] = {"regions": 320, "lines": 448}
_BATCH = 8


def _architecture(folder: pathlib.Path) -> pathlib.Path:
    """The description of YOLO11 that Ultralytics comes with, for one class and at an eighth of its width."""
    import ultralytics

    described = pathlib.Path(ultralytics.__file__).parent / "cfg" / "models" / "11" / "yolo11-seg.yaml"
    architecture = yaml.safe_load(described.read_text(encoding="utf-8"))
    architecture |= {"nc": 1, "scales": {"n": [0.50, 0.125, 512]}}
    # The letter before "-seg" chooses the scale.
    written = folder / "tiny11n-seg.yaml"
    written.write_text(yaml.safe_dump(architecture), encoding="utf-8")
    return written


def _save(trained: pathlib.Path, out: pathlib.Path, size: int) -> None:
    """What prediction needs, and nothing of where and when it was trained."""
    model = torch.load(trained, map_location="cpu", weights_only=False)["model"].half().eval()
    arguments = {"task": "segment", "imgsz": size}
    model.args, model.yaml_file, model.pt_path = arguments, None, None
    model.yaml = {name: value for name, value in model.yaml.items() if name != "yaml_file"}
    for parameter in model.parameters():
        parameter.requires_grad = False
    out.parent.mkdir(parents=True, exist_ok=True)
    # Without train_args the file would be taken for a detection model.
    torch.save({"epoch": -1, "model": model, "ema": None, "train_args": arguments}, out)


def train(kind: Kind, out: pathlib.Path, *, pages: int, epochs: int, start: pathlib.Path | None = None) -> str:
    """Train on ``pages`` drawn pages, write the weights, and say how well they find.

    Without a file of weights to ``start`` from, training starts from nothing.
    """
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        os.environ |= {"YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false", "YOLO_CONFIG_DIR": work}
        import ultralytics

        judged = range(samples.HELD_OUT, samples.HELD_OUT + 40)
        images = sum(samples.spread(samples.FinderSamples(folder, kind), range(pages)))
        samples.spread(samples.FinderSamples(folder, kind), judged)
        data = {"path": work, "train": "images/train", "val": "images/val", "names": {0: kind.removesuffix("s")}}
        (folder / "data.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        size = IMAGE_SIZE[kind]
        model = ultralytics.YOLO(str(start or _architecture(folder)), task="segment")
        model.train(
            data=str(folder / "data.yaml"),
            epochs=epochs,
            imgsz=size,
            batch=_BATCH,
            # Gradients are gathered until nbs images were seen; a short training needs every step.
            nbs=_BATCH,
            optimizer="AdamW",
            lr0=0.001 if start else 0.002,
            lrf=0.05,
            warmup_epochs=1,
            # Pages lie straight, fill the image, and are never mirrored.
            mosaic=0,
            fliplr=0,
            scale=0.2,
            translate=0.05,
            hsv_h=0,
            hsv_s=0.2,
            hsv_v=0.2,
            erasing=0,
            mask_ratio=2,
            device="cpu",
            workers=0,
            cache="ram",
            amp=False,
            seed=0,
            plots=False,
            val=False,
            verbose=False,
            project=str(folder / "runs"),
            name=kind,
        )
        trained = next((folder / "runs").rglob("last.pt"))
        _save(trained, out, size)
        found = ultralytics.YOLO(str(shutil.copy(out, folder / "judged.pt"))).val(
            data=str(folder / "data.yaml"), imgsz=size, device="cpu", workers=0, plots=False, verbose=False
        )
    return (
        f"{kind}: {images} images, {epochs} epochs, mAP50 {found.box.map50:.3f} (boxes) "
        f"and {found.seg.map50:.3f} (masks), mAP50-95 {found.box.map:.3f} (boxes) on pages not learnt from"
    )

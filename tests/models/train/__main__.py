"""Train the models anew: ``python -m tests.models.train regions lines text --out FOLDER``."""

from __future__ import annotations

import argparse
import pathlib
import time

from tests.models.hub import WEIGHTS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models.train", description=__doc__)
    parser.add_argument("models", nargs="+", choices=("regions", "lines", "text"))
    parser.add_argument("--out", type=pathlib.Path, default=WEIGHTS, help="where the weights go (%(default)s)")
    parser.add_argument("--pages", type=int, help="how many pages to learn from (regions 300, lines 200, text 1300)")
    parser.add_argument("--epochs", type=int, help="how often to see each of them (regions 10, lines 6)")
    parser.add_argument("--steps", type=int, default=4000, help="how long to train the text reader (%(default)s)")
    parser.add_argument("--start", type=pathlib.Path, help="weights to go on from: a file, for text a folder")
    arguments = parser.parse_args()
    for model in arguments.models:
        started, out = time.monotonic(), arguments.out / model
        if model == "text":
            from tests.models.train import reader

            said = reader.train(out, pages=arguments.pages or 1300, steps=arguments.steps, start=arguments.start)
        else:
            from tests.models.train import finders

            pages, epochs = {"regions": (300, 10), "lines": (200, 6)}[model]
            said = finders.train(
                model,
                out / "model.pt",
                pages=arguments.pages or pages,
                epochs=arguments.epochs or epochs,
                start=arguments.start,
            )
        print(f"{said}; {time.monotonic() - started:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()

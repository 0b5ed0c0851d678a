#!/usr/bin/env python3
"""Trains a character-level GPT on any text file and writes it in octavo's single-file form.

The first 90% of the characters train, the rest validate. Validation is over the whole held-out text, in the windows of `octavo score
--document`: window i reads characters [i·T, i·T+T) and predicts each one's successor, the last window may be short. The best model seen
is kept in --out; --checkpoint holds all that is needed to go on (--resume), exactly as if the run had not been interrupted.

    tools/train.py play.txt --out tiny.safetensors --checkpoint tiny.ckpt
"""

import argparse
import math
import os
import signal
import sys
import time


def prepare_environment():
    """Restarts Python once with an allocator that keeps large blocks, which makes small models train about three times as fast."""
    if os.environ.get("OCTAVO_TRAIN_READY"):
        return
    environment = dict(os.environ, OCTAVO_TRAIN_READY="1")
    environment.setdefault("MALLOC_MMAP_THRESHOLD_", str(1 << 40))
    environment.setdefault("MALLOC_TRIM_THRESHOLD_", str(1 << 40))
    environment.pop("OPENBLAS_CORETYPE", None)  # forces another CPU's kernels where it is set
    os.execve(sys.executable, [sys.executable] + sys.argv, environment)


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("text", help="the text to learn, UTF-8; each code point is a character")
    add("--out", required=True, metavar="FILE", help="the best model so far, .safetensors")
    add("--checkpoint", metavar="FILE", help="written every --eval-every steps and on interruption")
    add("--resume", action="store_true", help="go on from --checkpoint if it exists")
    add("--context", type=int, default=64, help="context length (%(default)s)")
    add("--width", type=int, default=32, help="(%(default)s)")
    add("--layers", type=int, default=2, help="(%(default)s)")
    add("--heads", type=int, default=4, help="(%(default)s)")
    add("--activation", choices=("gelu", "gelu_new", "relu"), default="gelu_new", help="(%(default)s)")
    add("--no-bias", action="store_true", help="no biases anywhere")
    add("--tied", action="store_true", help="the head shares the token embedding")
    add("--epsilon", type=float, default=1e-5, help="of layer norm (%(default)s)")
    add("--dtype", choices=("F32", "F16", "BF16"), default="F32", help="how --out stores weights (%(default)s)")
    add("--steps", type=int, default=40000, help="(%(default)s)")
    add("--batch", type=int, default=64, help="windows a step (%(default)s)")
    add("--rate", type=float, default=3e-3, help="peak learning rate (%(default)s)")
    add("--final-rate", type=float, default=0.03, help="last learning rate as a share of the peak (%(default)s)")
    add("--warm-up", type=int, default=200, help="steps until the peak rate (%(default)s)")
    add("--beta1", type=float, default=0.9, help="(%(default)s)")
    add("--beta2", type=float, default=0.99, help="(%(default)s)")
    add("--weight-decay", type=float, default=0.1, help="on matrices only (%(default)s)")
    add("--clip", type=float, default=1.0, help="largest gradient norm (%(default)s)")
    add("--dropout", type=float, default=0.0, help="(%(default)s)")
    add("--seed", type=int, default=1, help="(%(default)s)")
    add("--eval-every", type=int, default=1000, help="steps between validations (%(default)s)")
    add("--threads", type=int, default=1, help="(%(default)s)")
    arguments = parser.parse_args(argv)
    if arguments.width % arguments.heads:
        parser.error(f"--heads {arguments.heads} does not divide --width {arguments.width}")
    for name in ("context", "width", "layers", "heads", "steps", "batch", "eval_every", "threads"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if arguments.resume and not arguments.checkpoint:
        parser.error("--resume needs --checkpoint")
    return arguments


# What may differ between a run and its continuation; every other setting must be as it was.
FREE_TO_CHANGE = {"text", "out", "checkpoint", "resume", "threads", "eval_every", "dtype"}


def learning_rate(arguments, step):
    """Linear warm-up to the peak, then a cosine down to --final-rate of it."""
    if step < arguments.warm_up:
        return arguments.rate * (step + 1) / arguments.warm_up
    progress = (step - arguments.warm_up) / max(1, arguments.steps - arguments.warm_up)
    low = arguments.rate * arguments.final_rate
    return low + 0.5 * (arguments.rate - low) * (1 + math.cos(math.pi * min(1.0, progress)))


def validation_loss(model, tokens, context, batch=64):
    """Mean nats a character over all of `tokens` but the first, in consecutive windows of `context`, the last one short."""
    import torch
    import torch.nn.functional as F

    def total(x, y):
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none").double().sum().item()

    model.eval()
    targets = len(tokens) - 1
    whole = targets // context
    with torch.no_grad():
        x = tokens[: whole * context].view(whole, context)
        y = tokens[1 : whole * context + 1].view(whole, context)
        nats = sum(total(x[i : i + batch], y[i : i + batch]) for i in range(0, whole, batch))
        if whole * context < targets:
            nats += total(tokens[None, whole * context : -1], tokens[None, whole * context + 1 :])
    model.train()
    return nats / targets


def clock(seconds):
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def save_atomically(path, state):
    import torch

    torch.save(state, f"{path}.partial")
    os.replace(f"{path}.partial", path)


def read_text(path, context):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"train.py: {path}: {error}")
    split = len(text) * 9 // 10
    if split < context + 1 or len(text) - split < 2:
        sys.exit(f"train.py: {path}: {len(text)} characters are too few for a context of {context}")
    return text, split


def train(arguments):
    import torch
    import torch.nn.functional as F

    from model_file import single_file_metadata, write_safetensors
    from torch_gpt import GPT, initialize

    torch.set_num_threads(arguments.threads)
    text, split = read_text(arguments.text, arguments.context)
    vocabulary = sorted(set(text))
    ids = {character: i for i, character in enumerate(vocabulary)}
    tokens = torch.tensor([ids[character] for character in text])
    training, held_out = tokens[:split], tokens[split:]
    config = {
        "n_embd": arguments.width,
        "n_head": arguments.heads,
        "n_layer": arguments.layers,
        "n_positions": arguments.context,
        "vocab_size": len(vocabulary),
        "activation_function": arguments.activation,
        "layer_norm_epsilon": arguments.epsilon,
        "tie_word_embeddings": arguments.tied,
        "bias": not arguments.no_bias,
    }
    metadata = single_file_metadata(config, vocabulary, "\n" if "\n" in ids else None)
    torch.manual_seed(arguments.seed)
    model = GPT(dict(config, dropout=arguments.dropout))
    initialize(model, arguments.seed)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": arguments.weight_decay},
            {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=arguments.rate,
        betas=(arguments.beta1, arguments.beta2),
        foreach=True,
    )
    settings = {k: v for k, v in vars(arguments).items() if k not in FREE_TO_CHANGE}
    settings["vocabulary"] = "".join(vocabulary)
    step, best = 0, math.inf
    if arguments.resume and os.path.exists(arguments.checkpoint):
        state = torch.load(arguments.checkpoint)
        for name, value in settings.items():
            if state["settings"].get(name) != value:
                sys.exit(f"train.py: {arguments.checkpoint} was made with {name} = {state['settings'].get(name)!r}, not {value!r}")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        step, best = state["step"], state["best"]
        print(f"resumed at step {step}, best validation loss {best:.4f}", flush=True)
    print(
        f"{sum(p.numel() for p in parameters):,} parameters, vocabulary {len(vocabulary)}, "
        f"{len(training):,} characters to train on, {len(held_out):,} held out",
        flush=True,
    )

    interrupted = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: interrupted.append(received))

    def save():
        if arguments.checkpoint:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "random": torch.get_rng_state(),
                "step": step,
                "best": best,
                "settings": settings,
            }
            save_atomically(arguments.checkpoint, state)

    offsets = torch.arange(arguments.context)
    began, first_step = time.monotonic(), step
    running, counted = torch.zeros(()), 0
    while step < arguments.steps and not interrupted:
        # Each step's windows depend on seed and step alone, so a resumed run sees what the unbroken one would have.
        generator = torch.Generator().manual_seed((arguments.seed << 32) + step)
        places = torch.randint(len(training) - arguments.context, (arguments.batch, 1), generator=generator) + offsets
        loss = F.cross_entropy(model(training[places]).flatten(0, 1), training[places + 1].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, arguments.clip)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(arguments, step)
        optimizer.step()
        running += loss.detach()
        counted += 1
        step += 1
        if step % arguments.eval_every == 0 or step == arguments.steps:
            held_out_loss = validation_loss(model, held_out, arguments.context)
            if held_out_loss < best:
                best = held_out_loss
                write_safetensors(
                    arguments.out, {k: v.numpy() for k, v in model.tensors().items()}, metadata, arguments.dtype
                )
            save()
            spent = time.monotonic() - began
            left = spent / (step - first_step) * (arguments.steps - step)
            print(
                f"step {step}/{arguments.steps}  training {running.item() / counted:.4f}  validation {held_out_loss:.4f}  "
                f"best {best:.4f}  {spent / (step - first_step) * 1e3:.0f} ms a step  {clock(left)} left",
                flush=True,
            )
            running, counted = torch.zeros(()), 0
    if interrupted:
        save()
        where = f"; go on with --resume --checkpoint {arguments.checkpoint}" if arguments.checkpoint else ""
        print(f"interrupted after step {step}{where}", file=sys.stderr)
        sys.exit(128 + interrupted[0])
    print(f"best validation loss {best:.4f} nats a character, in {arguments.out}")


if __name__ == "__main__":
    given = parse_arguments()
    prepare_environment()
    train(given)

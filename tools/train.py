#!/usr/bin/env python3
"""Trains a character-level GPT on any text file and writes it in octavo's single-file form.

The first 90% of the characters train, the rest validate. Validation is over the whole held-out text, in the windows of `octavo score
--document`: window i reads characters [i·T, i·T+T) and predicts each one's successor, the last window may be short. The best model seen
is kept in --out; --checkpoint holds all that is needed to go on (--resume), exactly as if the run had not been interrupted.

    tools/train.py play.txt --out tiny.safetensors --checkpoint tiny.ckpt
"""

import hashlib
import importlib.util
import math
import os
import signal
import sys
import time

from arguments import Parser, file_name, number, one_line
from output_files import existing, overlap, replacing


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
    parser = Parser(__doc__)
    add = parser.add_argument
    count, share = number(int, 1), number(float, 0, 1)
    add("text", help="the text to learn, UTF-8; each code point is a character")
    add("--out", required=True, type=file_name, metavar="FILE", help="the best model so far, .safetensors")
    add("--checkpoint", type=file_name, metavar="FILE", help="written every --eval-every steps and on interruption")
    add("--resume", action="store_true", help="go on from --checkpoint if it exists")
    add("--force", action="store_true", help="begin anew, and overwrite --out and --checkpoint")
    add("--context", type=count, default=64, metavar="N", help="context length (%(default)s)")
    add("--width", type=count, default=32, metavar="N", help="(%(default)s)")
    add("--layers", type=count, default=2, metavar="N", help="(%(default)s)")
    add("--heads", type=count, default=4, metavar="N", help="(%(default)s)")
    add("--activation", choices=("gelu", "gelu_new", "relu"), default="gelu_new", help="(%(default)s)")
    add("--no-bias", action="store_true", help="no biases anywhere")
    add("--tied", action="store_true", help="the head shares the token embedding")
    add("--epsilon", type=share, default=1e-5, metavar="X", help="of layer norm (%(default)s)")
    add("--dtype", choices=("F32", "F16", "BF16"), default="F32", help="how --out stores weights (%(default)s)")
    add("--steps", type=count, default=40000, metavar="N", help="(%(default)s)")
    add("--batch", type=count, default=64, metavar="N", help="windows a step (%(default)s)")
    add("--rate", type=number(float, 0), default=3e-3, metavar="X", help="peak learning rate (%(default)s)")
    add("--final-rate", type=share, default=0.03, metavar="X", help="last learning rate as a share of the peak (%(default)s)")
    add("--warm-up", type=number(int, 0), default=200, metavar="N", help="steps until the peak rate (%(default)s)")
    add("--beta1", type=number(float, 0, 0.9999), default=0.9, metavar="X", help="(%(default)s)")
    add("--beta2", type=number(float, 0, 0.9999), default=0.99, metavar="X", help="(%(default)s)")
    add("--weight-decay", type=number(float, 0), default=0.1, metavar="X", help="on matrices only (%(default)s)")
    add("--clip", type=number(float, 0), default=1.0, metavar="X", help="largest gradient norm (%(default)s)")
    add("--dropout", type=number(float, 0, 0.9999), default=0.0, metavar="X", help="(%(default)s)")
    add("--seed", type=number(int, 0, 2**31 - 1), default=1, metavar="N", help="(%(default)s)")
    add("--eval-every", type=count, default=1000, metavar="N", help="steps between validations (%(default)s)")
    add("--threads", type=count, default=1, metavar="N", help="(%(default)s)")
    arguments = parser.parse_args(argv)
    if arguments.width % arguments.heads:
        parser.error(f"--heads {arguments.heads} does not divide --width {arguments.width}")
    if arguments.resume and not arguments.checkpoint:
        parser.error("--resume needs --checkpoint")
    if arguments.resume and arguments.force:
        parser.error("--resume and --force: expected one of them, not both")
    for flag in ("out", "checkpoint"):  # seen now, not after the first thousand steps
        path = getattr(arguments, flag)
        if path and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or ".")):
            parser.error(f"--{flag} {path}: there is no folder for such a file")
    outputs = {"--out": arguments.out, "--checkpoint": arguments.checkpoint}
    if message := overlap(outputs, [arguments.text]):
        parser.error(message)
    goes_on = arguments.resume and os.path.exists(arguments.checkpoint)
    if not arguments.force and not goes_on and (message := existing(outputs.values())):
        fail(message)
    return arguments


def fail(message):
    sys.exit("train.py: " + one_line(message))


def require_packages():
    """One line where this Python lacks what training needs, not a traceback."""
    missing = [name for name in ("numpy", "torch") if importlib.util.find_spec(name) is None]
    if missing:
        requirements = os.path.join(os.path.dirname(os.path.realpath(__file__)), "requirements.txt")
        fail(f"{sys.executable} lacks {' and '.join(missing)}: {sys.executable} -m pip install -r {requirements}, "
             "or apt-get install python3-torch and run it with /usr/bin/python3")


# What may differ between a run and its continuation; every other setting must be as it was.
FREE_TO_CHANGE = {"text", "out", "checkpoint", "resume", "force", "threads", "eval_every", "dtype"}


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

    with replacing(path) as file:
        torch.save(state, file)


def read_text(path, context):
    try:
        # Without a byte order mark, as octavo reads texts, and with the line ends as they are.
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(f"{path}: {error}")
    split = len(text) * 9 // 10
    if split < context + 1 or len(text) - split < 2:
        fail(f"{path}: {len(text)} characters are too few for a context of {context}")
    return text, split


def make_optimizer(arguments, parameters):
    import torch

    return torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": arguments.weight_decay},
            {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=arguments.rate,
        betas=(arguments.beta1, arguments.beta2),
        foreach=True,
    )


def load_checkpoint(path, settings, digest):
    """What an earlier run saved; ends the program when that run had other settings or another text."""
    import torch

    try:
        state = torch.load(path)
        made_with = state["settings"]
    except Exception as error:  # a damaged pickle raises nearly anything
        fail(f"{path}: not a checkpoint of train.py: {error}")
    for name, value in settings.items():
        if made_with.get(name) != value:
            fail(f"{path} was made with {name} = {made_with.get(name)!r}, not {value!r}")
    if state.get("text", digest) != digest:  # checkpoints from before it was kept lack it
        fail(f"{path} was made from another text")
    return state


def is_model(path):
    from model_file import FORMAT, read_safetensors

    try:
        return read_safetensors(path)[1].get("format") == FORMAT
    except Exception:  # whatever the file is
        return False


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
    optimizer = make_optimizer(arguments, parameters)
    settings = {k: v for k, v in vars(arguments).items() if k not in FREE_TO_CHANGE}
    settings["vocabulary"] = "".join(vocabulary)
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    step, best = 0, math.inf
    if arguments.resume and os.path.exists(arguments.checkpoint):
        state = load_checkpoint(arguments.checkpoint, settings, digest)
        if os.path.exists(arguments.out) and not is_model(arguments.out):
            fail(f"--out {arguments.out} is there, but is no model of octavo's; expected the one of the run that is resumed")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        # A best model that is gone cannot be the result of this run.
        step, best = state["step"], state["best"] if os.path.exists(arguments.out) else math.inf
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
                "text": digest,
            }
            save_atomically(arguments.checkpoint, state)

    offsets = torch.arange(arguments.context)
    began, first_step = time.monotonic(), step
    told = began  # when a line was last printed
    tell_first, tell_every = min(10, arguments.steps), 30  # steps; seconds
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
        spent = time.monotonic() - began
        pace = spent / (step - first_step)
        timing = f"{pace * 1e3:.0f} ms a step  {clock(pace * (arguments.steps - step))} left"
        is_validated = step % arguments.eval_every == 0 or step == arguments.steps
        if not is_validated and (step - first_step == tell_first or time.monotonic() - told > tell_every):
            print(f"step {step}/{arguments.steps}  training {running.item() / counted:.4f}  {timing}; "
                  f"validation every {arguments.eval_every} steps", flush=True)
            told = time.monotonic()
        if is_validated:
            held_out_loss = validation_loss(model, held_out, arguments.context)
            if not math.isfinite(held_out_loss):
                fail(f"the loss is {held_out_loss} at step {step}; a lower --rate or --clip may help")
            if held_out_loss < best:
                best = held_out_loss
                write_safetensors(
                    arguments.out, {k: v.numpy() for k, v in model.tensors().items()}, metadata, arguments.dtype
                )
            save()
            print(
                f"step {step}/{arguments.steps}  training {running.item() / counted:.4f}  validation {held_out_loss:.4f}  "
                f"best {best:.4f}  {timing}",
                flush=True,
            )
            told = time.monotonic()
            running, counted = torch.zeros(()), 0
    if interrupted:
        save()
        where = f"; go on with --resume --checkpoint {arguments.checkpoint}" if arguments.checkpoint else ""
        print(f"interrupted after step {step}{where}", file=sys.stderr)
        sys.exit(128 + interrupted[0])
    print(f"best validation loss {best:.4f} nats a character, in {arguments.out}")


if __name__ == "__main__":
    given = parse_arguments()
    require_packages()
    prepare_environment()
    try:
        train(given)
    except OSError as error:  # a full disk
        fail(f"{error.filename or given.out}: {error.strerror}")

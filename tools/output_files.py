"""Files that the Python tools write: refused where they are inputs or there already, and replaced in one step once they are whole.

Used by train.py, convert_nanogpt.py, model_file.py and bench/report. As the octavo command does: an output that is an input is wrong usage, also
through links; a file that exists is overwritten with --force only. Devices and pipes are written to as they are.
"""

import contextlib
import os
import stat
import tempfile


def _identity(file):
    """Device and inode of a regular file, by path or descriptor; None for anything else."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def overlap(outputs, inputs):
    """Says which of `outputs` (flag -> path, or None) is one of `inputs` (paths) or another output, or that standard output is an input;
    None where all is well."""
    read = {_identity(path): path for path in inputs} | {None: None}
    written = {}
    for flag, path in outputs.items():
        if path is None:
            continue
        if read.get(_identity(path)) is not None:
            return f"{flag}: {path} is the file {read[_identity(path)]} that is read; expected another name"
        key = _identity(path) or os.path.realpath(path)
        if key in written and (_identity(path) or not os.path.exists(path)):
            return f"{flag}: {path} is the file of {written[key]}, too; expected another name"
        written[key] = flag
    if read.get(_identity(1)) is not None:
        return f"standard output goes to the file {read[_identity(1)]} that is read; expected another file"
    return None


def existing(paths):
    """Says which of `paths` is a file already; None when none is."""
    for path in paths:
        if path is not None and _identity(path):
            return f"{path} exists; use --force to overwrite it, or another name"
    return None


@contextlib.contextmanager
def replacing(path):
    """Opens a new file for bytes, beside `path` under a name that nobody has. At the end it is synced and takes the place of `path`;
    after an exception it is gone and `path` is as it was. A symbolic link stays, what it leads to is replaced; permissions stay.
    """
    if os.path.exists(path) and not _identity(path):
        with open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    descriptor, partial = tempfile.mkstemp(prefix=f"{name}.", dir=folder)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            mode = stat.S_IMODE(os.stat(target).st_mode)
        else:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(partial, mode)
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Where cases come from: folders with case.json files, and zip files of the generator's cache."""

import fnmatch
import json
import os
import zipfile

TIERS = ("smoke", "standard", "full")


class CaseRef:
    """A case that is read when it is needed."""

    def __init__(self, name, tier, where, archive=None):
        self.name, self.tier, self.where, self.archive = name, tier, where, archive

    def load(self):
        """(case.json as a dictionary, file name -> bytes)."""
        if self.archive:
            with zipfile.ZipFile(self.archive) as z:
                files = {n[len(self.where) + 1 :]: z.read(n) for n in z.namelist() if n.startswith(self.where + "/")}
        else:
            files = {}
            for n in sorted(os.listdir(self.where)):
                with open(os.path.join(self.where, n), "rb") as f:
                    files[n] = f.read()
        return json.loads(files.pop("case.json")), files


class Archive:
    """One open zip file; zipfile objects may not be shared between threads that read at once, so reading takes a lock."""

    def __init__(self, path, lock):
        self.zip, self.lock, self.entries = zipfile.ZipFile(path), lock, {}
        for n in self.zip.namelist():
            folder, _, file = n.rpartition("/")
            self.entries.setdefault(folder, []).append(file)

    def load(self, folder):
        with self.lock:
            files = {n: self.zip.read(f"{folder}/{n}") for n in self.entries[folder]}
        return json.loads(files.pop("case.json")), files


class ArchiveRef(CaseRef):
    def load(self):
        return self.archive.load(self.where)


def find(paths, lock):
    """All cases below the given folders and zip files, in the order of their names."""
    out = []
    for path in paths:
        if path.endswith(".zip"):
            out += _archive(path, lock)
            continue
        for folder, subfolders, names in os.walk(path):
            subfolders.sort()
            if "case.json" in names:
                with open(os.path.join(folder, "case.json"), "rb") as f:
                    case = json.load(f)
                out.append(CaseRef(case["case"], case["tier"], folder))
            for n in sorted(names):
                if n.endswith(".zip"):
                    out += _archive(os.path.join(folder, n), lock)
    out.sort(key=lambda c: c.name)
    return out


def _archive(path, lock):
    a = Archive(path, lock)
    index = json.loads(a.zip.read("index.json"))
    return [ArchiveRef(name, tier, folder, a) for name, tier, folder in index]


def select(cases, tier="full", only=(), shard="1/1"):
    """Cases of a tier and those below it, whose names fit a pattern, every n-th from the k-th."""
    allowed = TIERS[: TIERS.index(tier) + 1]
    k, n = (int(x) for x in shard.split("/"))
    if not 1 <= k <= n:
        raise ValueError(f"--shard {shard}: expected k/n with 1 <= k <= n")
    cases = [c for c in cases if c.tier in allowed and (not only or any(fnmatch.fnmatchcase(c.name, p) for p in only))]
    return cases[k - 1 :: n]

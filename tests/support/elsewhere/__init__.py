"""Runs the proofs on another Linux machine, which has neither the packages nor a network.

    python -m support.elsewhere.pack | zstd -10 > root.tar.zst          # here, with PYTHONPATH=tests; about 0.5 GB

There, as root, with this archive and a copy of the repository (`.git` included) at REPO:

    mkdir root && zstd -dc root.tar.zst | tar -x -C root
    mkdir -p root/$REPO && cp -a . root/$REPO
    for folder in proc dev sys; do mount --rbind /$folder root/$folder; done
    env -i chroot root bash $REPO/tests/support/elsewhere/prove.sh 60   # the number of workers

REPO is the path that the repository has here, since compiled files contain it. The proofs that pass are then in
build/proofs.json there: copy this file to build/ here, and `make test` counts them. The system, Python, torch and g++
are those of this machine, so the proofs have the same keys. Those that need a GPU, nvcc, gdb, bubblewrap or the
network do not pass there.
"""

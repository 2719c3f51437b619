# Runs the proofs in the unpacked root: prove.sh WORKERS
cd "$(dirname "$0")/../../.." || exit
export HOME=/root PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 MAX_JOBS=4
CFLAGS="$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_config_var("CFLAGS"))') -g0"
export CFLAGS
git config --global --add safe.directory "$PWD"
.venv/bin/python -m pytest -n "${1:-2}" --no-loadscope-reorder --proofs=keep tests common/emulator/tests -m proof -q -rf

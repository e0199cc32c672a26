#!/bin/sh
# Installs git-frites below a directory, which is /usr/local unless one is named: ./install.sh "$HOME/.local"
set -eu
prefix=${1:-/usr/local}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$prefix"
cp -R "$here/bin" "$here/share" "$prefix/"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) echo "put $prefix/bin on your PATH" ;;
esac
"$prefix/bin/git-frites" --version

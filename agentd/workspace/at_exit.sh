# Bash reads this first (BASH_ENV). When the shell ends, it tells where it stands, or "-" where its folder is gone.
unset BASH_ENV
trap '{ builtin pwd -P || builtin echo -; } 2>/dev/null >&198' EXIT

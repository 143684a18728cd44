# Prints the comment at the head of a script if --help is among its arguments. Scripts source this file.
case " $* " in
*" --help "* | *" -h "*)
    awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"
    exit
    ;;
esac

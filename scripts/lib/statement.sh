# shellcheck shell=bash
# One statement of the program by its name, for psql.

# Arguments: the root of the checkout, the name of the statement.
statement() {
    awk -v name="$2" 'FNR == 1 { is_it = 0 } /^-- name: / { is_it = $3 == name; next } is_it' "$1"/sql/queries/*.sql
}

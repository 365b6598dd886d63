/// The reports, each runnable by `psql -f` with variables.
package enum Reports {}

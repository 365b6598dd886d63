/// The forward-only migrations in the order in which they are applied.
package enum Migrations {}

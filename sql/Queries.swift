/// The statements Perennial sends. Each is a named section of a file of `queries/`, and its first line states its purpose.
///
/// A constant is named like its section. `scripts/embed` writes the constants.
package enum Queries {}

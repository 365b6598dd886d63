/// The statements Perennial sends, one per file; the first line of each file states its purpose.
///
/// A constant is named like its file. The folders of `queries/` are named like the folders of `Sources/Ledger` that send
/// the statements. `scripts/embed` writes the constants.
package enum Queries {}

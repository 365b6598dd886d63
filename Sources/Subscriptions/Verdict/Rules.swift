/// The rules by which evidence is read.
package enum Rules {
    /// Counts their editions: raised whenever the same evidence comes to mean something else, so that every subscription is
    /// reconciled again at its next check.
    package static let edition = 2
}

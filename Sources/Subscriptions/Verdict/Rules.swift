/// The rules for interpreting evidence.
package enum Rules {
    /// The edition of the rules. It is raised whenever the same evidence gets a new meaning, so that every subscription
    /// is reconciled again at its next check.
    package static let edition = 5
}

/// The rules by which evidence is read.
public enum Rules {
    /// Counts their editions: raised whenever the same evidence comes to mean something else, so that every subscription is
    /// reconciled again at its next check.
    public static let edition = 2
}

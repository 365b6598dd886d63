/// All mistakes in the settings, so that one run is enough to correct them all.
struct SettingsMistakes: Error, CustomStringConvertible {
    /// One sentence for each invalid or missing value.
    let lines: [String]

    /// The sentences, one per line.
    var description: String { lines.joined(separator: "\n") }
}

/// A requirement of a command.
enum SettingsNeed: Hashable, Sendable {
    /// A database.
    case database
    /// The master key, because secrets are sealed or opened.
    case masterKey
}

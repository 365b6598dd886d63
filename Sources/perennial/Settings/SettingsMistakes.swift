/// Everything that is wrong with the settings, so that one run is enough to repair them all.
struct SettingsMistakes: Error, CustomStringConvertible {
    /// One sentence for each bad or missing value.
    let lines: [String]

    /// The sentences, one a line.
    var description: String { lines.joined(separator: "\n") }
}

/// What a command cannot do without.
enum SettingsNeed: Hashable, Sendable {
    /// A database.
    case database
    /// The master key, because secrets are sealed or opened.
    case masterKey
}

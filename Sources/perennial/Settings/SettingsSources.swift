import Configuration
import Foundation

/// The sources of settings: flags before the environment before the file. An empty value counts as absent.
struct SettingsSources {
    /// Values that no other source overrides.
    var flags: [SettingName: String] = [:]
    /// The process's environment.
    var environment: [String: String]
    /// The settings file's path; nil for the environment's PERENNIAL_CONFIG.
    var file: String?
    /// Reads a file as text; a seam for tests.
    var read: @Sendable (String) throws -> String = SettingsSources.textOfFile

    /// Returns the settings a command needs, with warnings for the log. Throws all mistakes at once.
    func settings(needing needs: Set<SettingsNeed>) throws(SettingsMistakes) -> (Settings, warnings: [String]) {
        var mistakes: [String] = []
        let environment = environment.filter { !$0.value.isEmpty }
        var file = SettingsFile("", name: "")
        if let path = self.file ?? environment[SettingName.fileVariable] {
            do {
                file = SettingsFile(try read(path), name: path)
                mistakes += file.mistakes
            } catch {
                mistakes.append("\(SettingName.fileVariable): cannot read \(path): \(ExitStatus.sentence(for: error))")
            }
        }
        let values = SettingsValues(
            reader: ConfigReader(providers: [
                provider(of: Dictionary(uniqueKeysWithValues: flags.map { ($0.rawValue, $1) })),
                provider(of: environment),
                provider(of: file.values),
            ]),
            libpq: LibpqVariable.connectionString(environment: environment, file: file.values),
            databaseSource: databaseSource(environment: environment, file: file.values), read: read)
        let settings = Settings(values, needing: needs, mistakes: &mistakes)
        guard mistakes.isEmpty else { throw SettingsMistakes(lines: mistakes) }
        return (settings, Self.warnings(about: environment) + file.warnings)
    }

    private func databaseSource(environment: [String: String], file: [String: String]) -> String {
        if flags[.databaseURL] != nil { return "--database-url" }
        let name = SettingName.databaseURL.rawValue
        let given = LibpqVariable.allCases.map(\.rawValue).filter { environment[$0] != nil || file[$0] != nil }
        guard environment[name] == nil, file[name]?.isEmpty ?? true, !given.isEmpty else { return name }
        return given.joined(separator: ", ")
    }

    /// Names of the environment that look like settings and are none, one sentence each. Tests and examples have names
    /// of their own.
    private static func warnings(about environment: [String: String]) -> [String] {
        let others = [
            "PERENNIAL_TEST_", "PERENNIAL_FUZZ_", "PERENNIAL_WRITE_GOLDENS", "PERENNIAL_KEY", "PERENNIAL_URL",
        ]
        let known = SettingName.allCases.map(\.rawValue) + [SettingName.fileVariable]
        return environment.keys.filter { name in
            name.hasPrefix("PERENNIAL_") && !known.contains(name) && !others.contains(where: name.hasPrefix)
        }.sorted().map { name in
            let hint = SettingName.nearest(to: name).map { "did you mean \($0)?" } ?? "it is ignored."
            return "\(name) of the environment is unknown; \(hint)"
        }
    }

    /// Provides only the program's own names, so that a stray variable with the same name in lower case has no effect.
    private func provider(of values: [String: String]) -> EnvironmentVariablesProvider {
        let names = Set(SettingName.allCases.map(\.rawValue))
        let secrets = Set(SettingName.allCases.filter(\.isSecret).map(\.rawValue))
        return EnvironmentVariablesProvider(
            environmentVariables: values.filter { names.contains($0.key) && !$0.value.isEmpty },
            secretsSpecifier: .specific(secrets))
    }

    /// Returns the text of a small file.
    @Sendable static func textOfFile(_ path: String) throws -> String {
        let bytes = try InputFile(path).contents(bytesMax: SettingsFile.bytesMax)
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Raw values by name, whichever source they come from.
struct SettingsValues {
    let reader: ConfigReader
    /// The connection string of the `PG*` variables; nil when none is set.
    let libpq: String?
    /// What gives the location of the database, by name: a flag, a setting, or the `PG*` variables that are set.
    let databaseSource: String
    /// Reads a file as text.
    let read: @Sendable (String) throws -> String

    /// The value of a setting, or nil.
    subscript(name: SettingName) -> String? {
        let components = name.rawValue.lowercased().split(separator: "_").map(String.init)
        return reader.string(forKey: ConfigKey(components), isSecret: name.isSecret)
    }
}

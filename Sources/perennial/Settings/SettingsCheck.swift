import AppStore
import Foundation
import Postgres
import Server

/// A conversion of raw values into typed ones that collects the mistakes in them. Secrets never appear in a sentence.
struct SettingsCheck {
    let values: SettingsValues
    private(set) var mistakes: [String] = []

    init(values: SettingsValues) {
        self.values = values
    }

    /// Returns the location of the database; empty when the `PG*` variables are sufficient.
    mutating func database(isNeeded: Bool) -> String {
        if values[.databaseURL] != nil { return connectionString(.databaseURL) ?? "" }
        if let libpq = values.libpq { return libpq }
        if isNeeded {
            mistakes.append(
                "DATABASE_URL is not set; give a libpq URI such as postgresql://user@host/perennial, or set PGHOST and "
                    + "PGDATABASE.")
        }
        return ""
    }

    /// Checks that libpq can read a connection string.
    mutating func connectionString(_ name: SettingName) -> String? {
        guard let text = values[name] else { return nil }
        do {
            try DatabaseConfiguration(connectionString: text).validate()
        } catch {
            mistakes.append("\(name.rawValue): \(error.message)")
        }
        return text
    }

    /// Returns the 32 bytes of the master key, given directly or in a file.
    mutating func masterKey(isNeeded: Bool) -> [UInt8]? {
        let advice = "give 32 bytes in base64, made with `head -c 32 /dev/urandom | base64`."
        let source: String
        let text: String
        switch (values[.masterKey], values[.masterKeyFile]) {
        case (nil, nil):
            if isNeeded {
                mistakes.append("PERENNIAL_MASTER_KEY or PERENNIAL_MASTER_KEY_FILE is not set; \(advice)")
            }
            return nil
        case (.some, .some):
            mistakes.append("PERENNIAL_MASTER_KEY and PERENNIAL_MASTER_KEY_FILE are both set; keep one of them.")
            return nil
        case (let key?, nil):
            (source, text) = ("PERENNIAL_MASTER_KEY", key)
        case (nil, let path?):
            source = "PERENNIAL_MASTER_KEY_FILE"
            do {
                text = try values.read(path)
            } catch {
                mistakes.append("\(source): cannot read \(path): \(ExitStatus.sentence(for: error))")
                return nil
            }
        }
        guard let key = Data(base64Encoded: text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            mistakes.append("\(source) is not base64; \(advice)")
            return nil
        }
        guard key.count == 32 else {
            mistakes.append("\(source) has \(key.count) bytes; \(advice)")
            return nil
        }
        return [UInt8](key)
    }

    /// Returns a whole number within limits.
    mutating func number(_ name: SettingName, in limits: ClosedRange<Int>, of what: String) -> Int? {
        guard let text = values[name] else { return nil }
        guard let number = Int(text), limits.contains(number) else {
            mistakes.append(
                "\(name.rawValue) is '\(text)'; give \(what) as a whole number from \(limits.lowerBound) to "
                    + "\(limits.upperBound).")
            return nil
        }
        return number
    }

    /// Returns a list of addresses and ranges.
    mutating func trustedProxies(_ name: SettingName) -> TrustedProxies? {
        guard let text = values[name] else { return nil }
        do throws(TrustedProxies.UnknownRange) {
            return try TrustedProxies(text)
        } catch {
            mistakes.append(
                "\(name.rawValue) has '\(error.text)'; give up to \(TrustedProxies.rangesMax) addresses and ranges with "
                    + "commas between them, such as 10.0.0.7,192.168.0.0/16,fd00::/8.")
            return nil
        }
    }

    /// Returns an HTTP or HTTPS address.
    mutating func url(_ name: SettingName) -> String? {
        guard let text = values[name] else { return nil }
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = url.host, !host.isEmpty
        else {
            mistakes.append("\(name.rawValue) is '\(text)'; give an address such as https://host/path.")
            return nil
        }
        return text
    }

    /// Returns the authorities of a simulated App Store. A file of them is refused while one of the stores is Apple's:
    /// a user who can write that file could then read every shared secret.
    mutating func trustedRoots(ofStoresAt addresses: [(name: SettingName, url: String)]) -> TrustedRoots? {
        let name = SettingName.appStoreRootFile.rawValue
        guard let path = values[.appStoreRootFile] else { return nil }
        let apples = addresses.filter { Self.isApples($0.url) }.map(\.name.rawValue)
        guard apples.isEmpty else {
            mistakes.append(
                "\(name) is for a pretend App Store, but \(apples.joined(separator: " and ")) lead\(apples.count == 1 ? "s" : "") "
                    + "to Apple; give the pretend store's addresses, or leave the file out.")
            return nil
        }
        do {
            return try TrustedRoots(pem: values.read(path))
        } catch {
            mistakes.append("\(name): cannot use \(path): \(ExitStatus.sentence(for: error))")
            return nil
        }
    }

    private static func isApples(_ url: String) -> Bool {
        guard let host = URL(string: url)?.host?.lowercased() else { return false }
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return name == "apple.com" || name.hasSuffix(".apple.com")
    }

    /// Returns the value of one of a few words.
    mutating func word<Value>(_ name: SettingName, of words: [(String, Value)]) -> Value? {
        guard let text = values[name] else { return nil }
        guard let found = words.first(where: { $0.0 == text.lowercased() }) else {
            mistakes.append("\(name.rawValue) is '\(text)'; give one of \(words.map(\.0).joined(separator: ", ")).")
            return nil
        }
        return found.1
    }
}

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

import AppStoreSimulator
import ArgumentParser
import Foundation
import Logging
import Testing

@testable import perennial

@Suite("Settings come from flags, environment and file, in this order") struct SettingsTests {
    /// 32 bytes in base64.
    static let key = Data((0..<32).map { UInt8($0) }).base64EncodedString()

    static func settings(
        _ environment: [String: String], flags: [SettingName: String] = [:], files: [String: String] = [:],
        needing needs: Set<SettingsNeed> = []
    ) throws -> (Settings, warnings: [String]) {
        try SettingsSources(flags: flags, environment: environment) { path in
            guard let text = files[path] else { throw Failure("\(path) does not exist.") }
            return text
        }.settings(needing: needs)
    }

    static func mistakes(
        _ environment: [String: String], flags: [SettingName: String] = [:], files: [String: String] = [:],
        needing needs: Set<SettingsNeed> = []
    ) -> [String] {
        do {
            _ = try settings(environment, flags: flags, files: files, needing: needs)
            return []
        } catch let error as SettingsMistakes {
            return error.lines
        } catch {
            return ["unexpected: \(error)"]
        }
    }

    @Test func `messages name what gives the location of the database`() throws {
        let urls = ["DATABASE_URL": "postgresql:///a"]
        let variables = ["PGHOST": "h", "PGPASSFILE": "f", "PGUSER": ""]
        let cases: [([String: String], [SettingName: String], String)] = [
            (urls, [:], "DATABASE_URL"), (variables, [:], "PGHOST, PGPASSFILE"),
            (variables.merging(urls) { $1 }, [:], "DATABASE_URL"), ([:], [:], "DATABASE_URL"),
            (urls, [.databaseURL: "postgresql:///b"], "--database-url"),
            (["PERENNIAL_CONFIG": "f"], [:], "PGHOST, PGDATABASE"),
            (["PERENNIAL_CONFIG": "f", "PGPASSWORD": "x"], [:], "PGHOST, PGDATABASE, PGPASSWORD"),
            (["PERENNIAL_CONFIG": "g", "PGPASSWORD": "x"], [:], "DATABASE_URL of g"),
        ]
        let files = ["f": "PGHOST=h\nPGDATABASE=d", "g": "DATABASE_URL=postgresql:///c"]
        for (environment, flags, source) in cases {
            let (settings, _) = try Self.settings(environment, flags: flags, files: files)
            #expect(settings.databaseSource == source, "\(environment)")
        }
    }

    @Test func `flags come before the environment, the environment before the file`() throws {
        let files = ["f": "PERENNIAL_HTTP_PORT=1\nPERENNIAL_HTTP_HOST=file\nPERENNIAL_POLL_SPEEDUP=7"]
        let environment = [
            "PERENNIAL_CONFIG": "f", "PERENNIAL_HTTP_PORT": "2", "PERENNIAL_HTTP_HOST": "environment",
            "PERENNIAL_LOG_LEVEL": "",
        ]
        let (settings, warnings) = try Self.settings(environment, flags: [.httpPort: "3"], files: files)
        #expect(settings.httpPort == 3)
        #expect(settings.httpHost == "environment")
        #expect(settings.pollSpeedup == 7)
        #expect(settings.logLevel == .info)
        #expect(warnings.isEmpty)
    }

    @Test func `a name of the environment that looks like a setting and is none is warned about`() throws {
        let (_, warnings) = try Self.settings([
            "PERENNIAL_HTTP_PROT": "1", "PERENNIAL_XYZ": "1", "PERENNIAL_TEST_ALL": "1", "PERENNIAL_KEY": "k",
            "PERENNIAL_EMPTY": "", "HTTP_PORT": "1",
        ])
        #expect(
            warnings == [
                "PERENNIAL_HTTP_PROT of the environment is unknown; did you mean PERENNIAL_HTTP_PORT?",
                "PERENNIAL_XYZ of the environment is unknown; it is ignored.",
            ])
    }

    @Test func `every mistake is reported at once and no secret is shown`() {
        let lines = Self.mistakes(
            [
                "PERENNIAL_HTTP_PORT": "70000", "PERENNIAL_LOG_FORMAT": "xml", "PERENNIAL_LOG_LEVEL": "loud",
                "PERENNIAL_LEASE_SECONDS": "0", "PERENNIAL_POLL_SPEEDUP": "0", "PERENNIAL_APPSTORE_URL": "ftp://x",
                "PERENNIAL_MASTER_KEY": "c2VjcmV0c2VjcmV0", "PERENNIAL_TRUSTED_PROXIES": "10.0.0.0/8,10.0.0.0/40",
            ], needing: [.database, .masterKey])
        for name in [
            "PERENNIAL_HTTP_PORT", "PERENNIAL_LOG_FORMAT", "PERENNIAL_LOG_LEVEL", "PERENNIAL_LEASE_SECONDS",
            "PERENNIAL_POLL_SPEEDUP", "PERENNIAL_APPSTORE_URL", "PERENNIAL_MASTER_KEY", "DATABASE_URL",
            "PERENNIAL_TRUSTED_PROXIES",
        ] {
            #expect(lines.filter { $0.hasPrefix(name + " ") }.count == 1, "\(name): \(lines)")
        }
        #expect(lines.count == 9)
        #expect(!lines.contains { $0.contains("c2VjcmV0") })
    }

    @Test func `a mistake is called by the name of the source that it comes from`() {
        let odd: [SettingName: String] = [
            .leaseSeconds: "0", .httpPort: "-1", .databaseReadURL: "nonsense=1", .trustedProxies: "x",
            .appStoreSandboxURL: "ftp://x", .logLevel: "loud", .masterKey: "?",
        ]
        let variables = Dictionary(uniqueKeysWithValues: odd.map { ($0.rawValue, $1) })
        let file = ["PERENNIAL_CONFIG": "f"]
        let files = ["f": variables.map { "\($0)=\($1)" }.joined(separator: "\n")]
        let cases: [([String], (SettingName) -> String)] = [
            (Self.mistakes(file, flags: odd, files: files), \.flag),
            (Self.mistakes(file.merging(variables) { $1 }, files: files), \.rawValue),
            (Self.mistakes(file, files: files), { "\($0.rawValue) of f" }),
        ]
        for (lines, said) in cases {
            #expect(lines.count == odd.count, "\(lines)")
            for name in odd.keys {
                #expect(lines.contains { $0.hasPrefix("\(said(name)) ") || $0.hasPrefix("\(said(name)):") }, "\(lines)")
            }
        }
        #expect(
            Self.mistakes(file, flags: [.httpPort: "0x"], files: ["f": "PERENNIAL_HTTP_PORT=1"]) == [
                "--http-port is '0x'; give a port as a whole number from 0 to 65535."
            ])
    }

    @Test func `every flag of a setting is called like the setting`() throws {
        let values = try [
            SettingsFlags.parse([]).values, AppleFlags.parse([]).values, HTTPFlags.parse([]).values,
        ]
        let help = [SettingsFlags.helpMessage(), AppleFlags.helpMessage(), HTTPFlags.helpMessage()].joined()
        for name in values.flatMap(\.keys) { #expect(help.contains("\(name.flag) <"), "\(name)") }
    }

    @Test func `settings that are described in a log tell no secret`() throws {
        struct Service {
            let name = "server"
            let settings: Settings
        }
        let (settings, _) = try Self.settings([
            "DATABASE_URL": "postgresql://u:hushhush@h/d", "DATABASE_READ_URL": "postgresql://u:hushhush@r/d",
            "PERENNIAL_MASTER_KEY": Self.key,
        ])
        let service = Service(settings: settings)
        var dumped = ""
        dump(service, to: &dumped)
        let texts = ["\(settings)", "\(service)", "\([service] as [Any])", String(reflecting: service), dumped]
        for text in texts {
            #expect(!text.contains("hushhush") && !text.contains(Self.key), "\(text)")
            #expect(!text.contains("0, 1, 2, 3") && !text.contains("32 elements"), "\(text)")
        }
    }

    @Test(
        arguments: [
            ([:], 1), (["PGHOST": "h"], 0), (["DATABASE_URL": "postgresql:///x"], 0),
            (["PERENNIAL_DATABASE_URL": "x"], 1),
            (["DATABASE_URL": "postgresql://h:notaport-and-secret=/x?nonsense=1"], 1),
        ] as [([String: String], Int)])
    func `a database is named or missing`(environment: [String: String], mistakes: Int) {
        #expect(Self.mistakes(environment, needing: [.database]).count == mistakes)
    }

    @Test func `PG variables of the file become a connection string, unless the environment has them`() throws {
        let files = ["f": "PGHOST=h\nPGDATABASE=it's\nPGUSER=file"]
        let (settings, _) = try Self.settings(
            ["PERENNIAL_CONFIG": "f", "PGUSER": "environment"], files: files, needing: [.database])
        #expect(settings.database == "host='h' dbname='it\\'s'")
    }

    @Test func `an empty value counts as absent, whatever gives it`() throws {
        let names = SettingName.names + LibpqVariable.names
        let files = ["f": names.map { "\($0)=" }.joined(separator: "\n"), "g": "PGHOST=''\nPGDATABASE=d"]
        let lines = Self.mistakes(["PERENNIAL_CONFIG": "f"], files: files, needing: [.database, .masterKey])
        #expect(lines.count == 2 && lines.first?.hasPrefix("DATABASE_URL is not set; ") == true, "\(lines)")
        let (named, warnings) = try Self.settings(["PERENNIAL_CONFIG": "g", "DATABASE_URL": ""], files: files)
        #expect(named.database == "dbname='d'" && named.databaseSource == "PGDATABASE" && warnings.isEmpty)
        let (flagged, _) = try Self.settings(["PGHOST": "h"], flags: [.databaseURL: ""])
        #expect(flagged.databaseSource == "PGHOST")
    }

    @Test func `the master key comes from the variable or the file`() throws {
        #expect(try Self.settings(["PERENNIAL_MASTER_KEY": Self.key]).0.masterKey?.count == 32)
        let (settings, _) = try Self.settings(["PERENNIAL_MASTER_KEY_FILE": "k"], files: ["k": Self.key + "\n"])
        #expect(settings.masterKey == (0..<32).map { UInt8($0) })
        let both = ["PERENNIAL_MASTER_KEY": Self.key, "PERENNIAL_MASTER_KEY_FILE": "k"]
        #expect(Self.mistakes(both, files: ["k": Self.key]).count == 1)
        #expect(Self.mistakes(["PERENNIAL_MASTER_KEY_FILE": "gone"]).count == 1)
        #expect(Self.mistakes(["PERENNIAL_MASTER_KEY": "%%"]) != [])
        let empty = Self.mistakes(["PERENNIAL_MASTER_KEY_FILE": "k"], files: ["k": " \n"], needing: [.masterKey])
        #expect(empty.first?.hasPrefix("PERENNIAL_MASTER_KEY_FILE is empty (k); ") == true, "\(empty)")
        #expect(empty.first?.contains("run `perennial app rotate-secret` for each app") == true, "\(empty)")
    }

    @Test func `a pretend store's root is read, and refused while one of the addresses is Apple's`() throws {
        let root = try StoreIdentity().rootPEM
        let pretend = [
            "PERENNIAL_APPSTORE_URL": "https://localhost:1/verifyReceipt",
            "PERENNIAL_APPSTORE_SANDBOX_URL": "https://localhost:1/sandbox/verifyReceipt",
            "PERENNIAL_APPSTORE_SERVER_URL": "https://localhost:1",
            "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL": "https://localhost:1/sandbox", "PERENNIAL_APPSTORE_ROOT_FILE": "r",
        ]
        #expect(try Self.settings(pretend, files: ["r": root]).0.appStoreRoots != nil)
        #expect(try Self.settings([:]).0.appStoreRoots == nil)
        #expect(Self.mistakes(pretend).first?.contains("PERENNIAL_APPSTORE_ROOT_FILE: cannot use r: ") == true)
        #expect(Self.mistakes(pretend, files: ["r": "nonsense"]).first?.contains("no certificate in PEM form") == true)
        let apples: [(String, String?)] = [
            ("PERENNIAL_APPSTORE_URL", nil), ("PERENNIAL_APPSTORE_SANDBOX_URL", nil),
            ("PERENNIAL_APPSTORE_URL", "https://Buy.iTunes.Apple.com./verifyReceipt"),
            ("PERENNIAL_APPSTORE_SANDBOX_URL", "https://apple.com/x"), ("PERENNIAL_APPSTORE_SERVER_URL", nil),
            ("PERENNIAL_APPSTORE_SERVER_SANDBOX_URL", nil),
        ]
        for (name, url) in apples {
            var environment = pretend
            environment[name] = url
            #expect(
                Self.mistakes(environment, files: ["r": root]) == [
                    "PERENNIAL_APPSTORE_ROOT_FILE is for a pretend App Store, but \(name) leads to Apple; give the pretend "
                        + "store's addresses, or leave the file out."
                ])
        }
        var unreadable = pretend
        unreadable["PERENNIAL_APPSTORE_URL"] = "foo"
        #expect(
            Self.mistakes(unreadable, files: ["r": root]) == [
                "PERENNIAL_APPSTORE_URL is 'foo'; give an address such as https://host/path."
            ])
        #expect(
            Self.mistakes(["PERENNIAL_APPSTORE_ROOT_FILE": "r"], files: ["r": root]).first?.contains(
                "but PERENNIAL_APPSTORE_URL and PERENNIAL_APPSTORE_SANDBOX_URL and PERENNIAL_APPSTORE_SERVER_URL and "
                    + "PERENNIAL_APPSTORE_SERVER_SANDBOX_URL lead to Apple") == true)
        var fake = pretend
        fake["PERENNIAL_APPSTORE_URL"] = "https://pineapple.com/verifyReceipt"
        #expect(Self.mistakes(fake, files: ["r": root]) == [])
    }

    @Test func `a settings file tells a key that is there again`() {
        let file = SettingsFile("DATABASE_URL=a\nPGHOST=h\nDATABASE_URL=b\n", name: "f")
        #expect(file.values["DATABASE_URL"] == "b" && file.mistakes.isEmpty)
        #expect(file.warnings == ["f, line 3: DATABASE_URL is there again; the last one counts."])
    }

    @Test func `a settings file tells odd lines and unknown keys`() {
        let file = SettingsFile(
            "# note\n\nexport DATABASE_URL='postgresql:///x'\nPERENIAL_HTTP_PORT=1\nodd\nBLUE_WHALE=1", name: "f")
        #expect(file.values["DATABASE_URL"] == "postgresql:///x")
        #expect(file.mistakes == ["f, line 5: write KEY=VALUE, or # before a comment."])
        #expect(
            file.warnings == [
                "f, line 4: PERENIAL_HTTP_PORT is unknown; did you mean PERENNIAL_HTTP_PORT?",
                "f, line 6: BLUE_WHALE is unknown; it is ignored.",
            ])
        #expect(SettingName.nearest(to: "PERENNIAL_DATABASE_URL") != nil)
    }
}

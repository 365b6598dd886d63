import ArgumentParser
import Foundation
import Testing

@testable import perennial

@Suite("Commands read their arguments and describe themselves") struct CommandTests {
    /// Every command below a command, itself included.
    static func commands(below command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
        [command] + command.configuration.subcommands.flatMap(commands(below:))
            + command.configuration.groupedSubcommands.flatMap(\.subcommands).flatMap(commands(below:))
    }

    @Test func `every command has an abstract and an example`() {
        let commands = Self.commands(below: Perennial.self)
        #expect(commands.count > 20)
        for command in commands {
            #expect(!command.configuration.abstract.isEmpty, "\(command)")
            #expect(
                command.configuration.discussion.contains("perennial ") || command == CatalogCommand.self, "\(command)")
        }
    }

    @Test func `the title above examples says whether there are several`() {
        for command in Self.commands(below: Perennial.self) {
            let help = command.configuration.discussion
            guard let title = help.firstRange(of: /\bExamples?:\n/) else { continue }
            // Further spaces begin a line that continues the one before it.
            let lines = help[title.upperBound...].split(separator: "\n")
            let examples = lines.count { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }
            #expect((examples == 1) == (help[title] == "Example:\n"), "\(command)")
        }
    }

    @Test(arguments: [
        ["worker", "--once", "--metrics-port", "9464"], ["worker", "--metrics-port", "70000"],
        ["worker", "--metrics-host", "::1"], ["worker", "--once", "--metrics-host", "::1"],
        ["simulator", "--calendar-customers", "3"],
        ["app", "set", "a", "--sweep", "never"], ["app", "notifications"], ["worker", "--max-seconds", "3"],
        ["worker", "--once", "--max-seconds", "0"], ["receipt", "check"],
        ["receipt", "check", "--customer", "c"], ["receipt", "check", "--receipt", "1", "--app", "a"],
        ["key", "create", "--scope", "root"], ["app", "set", "a"], ["app", "add"], ["import"], ["nonsense"],
        ["explain", "--response", "x", "--at", "yesterday"], ["simulator", "--month-seconds", "0"],
        ["simulator", "--month-seconds", "1e300"], ["simulator", "--customers", "9223372036854775807"],
        ["simulator", "--arrivals-per-month", "1e300"], ["simulator", "--tls-root-file", "f"],
        ["simulator", "--epoch", "1969-12-31T23:59:59Z"],
        ["simulator", "--tls", "--tls-certificate", "borrowed"], ["simulator", "--tls-name", "n"],
        ["app", "add", "--bundle-id", "a", "--rate", "-1"], ["app", "set", "a", "--rate", "1e300"],
        ["app", "set", "a", "--rate", "1e-9"], ["app", "set", "a", "--rate", "nan"],
        ["app", "set", "a", "--burst", "1e300"], ["app", "set", "a", "--burst", "0"],
        ["report", "r", "--set", "novalue"], ["status", "--interval", "5"], ["status", "--watch", "--interval", "0"],
        ["app", "add", "--bundle-id", "com.example.ä"], ["app", "add", "--bundle-id", "com example"],
        ["app", "offer-key", "a"], ["app", "offer-key", "--remove"],
        ["app", "offer-key", "a", "--key-file", "f"], ["app", "offer-key", "a", "--key-id", "K"],
        ["app", "offer-key", "a", "--remove", "--key-id", "K"],
        ["app", "offer-key", "a", "--remove", "--key-file", "f", "--key-id", "K"],
        ["rebuild", "--customer", "c"], ["explain"], ["explain", "--app", "a"], ["explain", "--customer", "c"],
        ["explain", "--app", "a", "--customer", "c", "--response", "x"],
        ["explain", "--app", "a", "--customer", "c", "--previous", "x"],
        ["explain", "--response", "x", "--entitlement", "pro"],
        ["grant", "--app", "a", "--customer", "c", "--entitlement", "e"], ["customer", "erase", "--app", "a"],
    ])
    func `a bad command line is status 64`(arguments: [String]) {
        do {
            _ = try Perennial.parseAsRoot(arguments)
            Issue.record("\(arguments) was accepted.")
        } catch {
            #expect(Perennial.exitCode(for: error) == .validationFailure)
        }
    }

    /// Every option whose help names the limits of a number, with its command.
    private static let numbers = commands(below: Perennial.self).flatMap { command in
        Perennial.helpMessage(for: command, columns: 1_000)
            .matches(
                of: /\n  (--[a-z-]+) <[^>]+>\s+[^\n]*\(from [0-9.]+ (on|to [0-9]+)(, or 0)?(; default: [0-9.]+)?\)/
            )
            .map { (command, String($0.output.1)) }
    }

    @Test("A number outside its limits is refused by naming them")
    func number() {
        #expect(Self.numbers.count > 35)
        let others = ["nan", "1e99", "--format", "x", ""]
        for (place, (command, option)) in Self.numbers.enumerated() {
            for value in ["-7", others[place % others.count]] {
                do {
                    _ = try command.parse([option, value])
                    Issue.record("\(command) \(option) was accepted.")
                } catch {
                    let said = command.message(for: error)
                    #expect(said.contains("The value '\(value)' is invalid for '\(option) <"), "\(said)")
                    #expect(said.contains(/: give a (whole )?number from [0-9.]+ (on|to [0-9]+)(, or 0)?\./), "\(said)")
                    #expect(command.exitCode(for: error) == .validationFailure)
                }
            }
        }
    }

    @Test func `limits belong to their numbers, and 0 where it stands for none`() throws {
        let key = try #require(
            try Perennial.parseAsRoot(["key", "create", "--scope", "read", "--rate", "0", "--burst", "10000000"])
                as? KeyCreateCommand)
        #expect(key.rate == 0 && key.burst == 10_000_000)
        let list = try #require(
            try Perennial.parseAsRoot(["receipt", "list", "--limit", "100000"]) as? ReceiptListCommand)
        #expect(list.limit == 100_000)
        let usual = try #require(try Perennial.parseAsRoot(["receipt", "list"]) as? ReceiptListCommand)
        #expect(usual.limit == 100)
        let help = Perennial.helpMessage(for: ReceiptListCommand.self, columns: 1_000)
        #expect(help.contains("At most this many. (from 1 to 100000; default: 100)\n"), "\(help)")
        #expect(
            Perennial.helpMessage(for: KeyCreateCommand.self, columns: 1_000).contains("(from 0.001 to 1000000, or 0)"))
    }

    @Test(
        "What is no instant is refused with an example",
        arguments: [
            ["entitlements", "--app", "a", "--customer", "c", "--at"],
            ["entitlements", "--app", "a", "--customer", "c", "--known-at"], ["explain", "--response", "f", "--at"],
            ["grant", "--app", "a", "--customer", "c", "--entitlement", "e", "--reason", "r", "--until"],
            ["simulator", "--epoch"], ["webhook", "replay", "1", "--from"],
            ["webhook", "add", "--url", "https://example.com", "--from"],
        ])
    func instant(arguments: [String]) throws {
        for value in ["yesterday", "-1", "2026-13-01", "31.01.2026", ""] {
            do {
                _ = try Perennial.parseAsRoot(arguments + [value])
                Issue.record("\(arguments) \(value) was accepted.")
            } catch {
                let said = Perennial.message(for: error)
                #expect(said.contains("The value '\(value)' is invalid for '\(arguments.last ?? "") <"), "\(said)")
                #expect(said.contains("T12:00"), "\(said)")
            }
        }
        _ = try Perennial.parseAsRoot(arguments + ["2026-01-31"])
        _ = try Perennial.parseAsRoot(arguments + ["2026-01-31T12:00Z"])
    }

    @Test func `another frequency of sweeps is refused by naming those that there are`() {
        do {
            _ = try Perennial.parseAsRoot(["app", "set", "a", "--sweep", "auto"])
            Issue.record("It was accepted.")
        } catch {
            let said = Perennial.message(for: error)
            #expect(said.contains("auto") && said.contains("normal") && said.contains("relaxed"), "\(said)")
        }
    }

    @Test(arguments: [
        ["worker", "--metrics-port", "0", "--metrics-host", "::1"], ["app", "notifications", "a", "--off"],
        ["app", "set", "a", "--sweep", "relaxed"], ["migrate", "--no-roles"],
        ["worker", "--once", "--max-seconds", "3"], ["all", "--http-port", "0"],
        ["app", "add", "--bundle-id", "a", "--shared-secret-file", "-", "--rate", "0", "--sandbox", "refuse"],
        ["app", "show", "a"], ["app", "set", "a", "--ownership", "transfer_if_lapsed"],
        ["app", "offer-key", "a", "--key-file", "-", "--key-id", "K", "--issuer-id", "I"],
        ["app", "offer-key", "a", "--remove"],
        ["app", "rotate-secret", "a", "--shared-secret-file", "f"], ["catalog", "apply", "f"], ["catalog", "show"],
        ["key", "create", "--scope", "read", "--app", "a"], ["key", "revoke", "3"], ["receipt", "show", "7"],
        ["receipt", "add", "--app", "a", "--customer", "c", "-"], ["receipt", "check", "--receipt", "7"],
        ["receipt", "check", "--customer", "c", "--app", "a"], ["receipt", "list"], ["import", "-"],
        ["entitlements", "--app", "a", "--customer", "c", "--at", "2026-01-01T00:00:00Z"],
        ["explain", "--response", "-", "--bundle-id", "b", "--format", "json", "--previous", "f"],
        ["explain", "--app", "a", "--customer", "c", "--entitlement", "pro", "--at", "2026-01-01T00:00:00Z"],
        [
            "grant", "--app", "a", "--customer", "c", "--entitlement", "e", "--reason", "r", "--until",
            "2026-12-31T00:00:00Z",
        ],
        ["revoke-grant", "--app", "a", "--customer", "c", "--entitlement", "e", "--reason", "r", "--by", "kim"],
        ["customer", "show", "--app", "a", "--customer", "c", "--format", "json"],
        ["customer", "assign", "--app", "a", "--to", "c", "--original-transaction-id", "1", "--reason", "r"],
        ["customer", "merge", "--app", "a", "--from", "b", "--into", "c", "--reason", "r"],
        ["customer", "erase", "--app", "a", "--customer", "c", "--reason", "r", "--yes"],
        ["feed", "renew", "--yes", "--instead-of", "6fd05f2e-3b6c-4d5c-9a35-6f1f0c1d7a10"],
        ["rebuild"], ["rebuild", "--verify", "--app", "a", "--customer", "c"],
        ["status", "--watch", "--interval", "5"], ["report", "list"],
        ["report", "mrr", "--app", "a", "--by", "product"], ["simulator", "--port", "0", "--sandbox-customers", "1"],
        ["simulator", "--tls", "--tls-root-file", "f", "--tls-name", "store", "--tls-certificate", "wrong_name"],
    ])
    func `the documented command lines are understood`(arguments: [String]) throws {
        _ = try Perennial.parseAsRoot(arguments)
    }

    @Test("`help` knows every command, and no other")
    func help() throws {
        for words in [[], ["help"], ["key"], ["key", "create"], ["app", "set", "--help"]] as [[String]] {
            try Perennial.requireCommand(words)
        }
        for words in [["nope"], ["key", "nope"], ["status", "key"]] {
            let error = #expect(throws: ValidationError.self) { try Perennial.requireCommand(words) }
            #expect(error.map { Perennial.exitCode(for: $0) } == .validationFailure)
        }
    }

    @Test("`--version` prints the version alone")
    func version() {
        do {
            _ = try Perennial.parseAsRoot(["--version"])
            Issue.record("`--version` was taken for a command.")
        } catch {
            #expect(Perennial.exitCode(for: error) == .success)
            #expect(Perennial.fullMessage(for: error) == Perennial.version)
        }
    }

    /// Whatever names a version, with the words around it.
    @Test(
        "Each file names this version",
        arguments: [
            ("CHANGELOG.md", "\n## VERSION"), ("Sources/Server/HTTP/openapi.yaml", "version: \"VERSION\""),
            ("README.md", "perennial_VERSION_amd64.deb"), ("docs/install.md", "perennial_VERSION_amd64.deb"),
            ("docker-compose.yml", "image: perennial:VERSION\n"),
            ("docker-compose.override.yml", "image: perennial:VERSION\n"),
            ("docs/examples/receiver.compose.yml", "image: perennial:VERSION\n"),
            ("docs/examples/compose.production.yml", "perennial:VERSION"),
        ])
    func named(file: String, words: String) throws {
        let text = try String(contentsOf: ComposeFile.root.appending(path: file), encoding: .utf8)
        #expect(text.contains(words.replacing("VERSION", with: Perennial.version)))
    }
}

import ArgumentParser
import Foundation
import JSON
import Logging
import Postgres
import SQL
import Subscriptions

struct ReportCommand: AsyncParsableCommand {
    static let minutesMax = 30
    static let intervalSeconds = 10

    static let configuration = CommandConfiguration(
        "report", "Runs a report; `perennial report list` names them.",
        notes: """
            Reports are files of SQL that psql runs too, with the same variables. Exit status: 0 done, 1 failed, 2 the \
            report is a check and found something: its name ends in _check and it has rows, or a row of it counts something \
            as unexplained; 64 usage, 78 configuration. With --watch \
            it runs until SIGINT (Ctrl-C) or SIGTERM, which is status 0; a failure, such as a database that restarts, \
            is shown and the next look follows.
            """,
        examples: """
            perennial report list
            perennial report changes_by_day --from 2026-01-01 --until 2026-02-01 --format csv
            perennial report mrr --app com.example.app --by product
            perennial report stuck_work --watch --interval 10
            perennial report summaries_check || echo 'the summaries are wrong'
            """)

    @Argument(help: ArgumentHelp("The report's name, or list.", valueName: "NAME"))
    var name: String

    @Option(help: ArgumentHelp("From this date or instant on.", valueName: "D"))
    var from: String?

    @Option(help: ArgumentHelp("Before this date or instant.", valueName: "D"))
    var until: String?

    @Option(help: ArgumentHelp("Only this app, by Apple's bundle id.", valueName: "B"))
    var app: BundleID?

    @Option(help: ArgumentHelp("A row for each product, or the total: product or total.", valueName: "D"))
    var by: String?

    @Option(name: .customLong("set"), help: ArgumentHelp("Sets a variable of the report.", valueName: "name=value"))
    var variables: [String] = []

    @Flag(help: "Run it again and again until Ctrl-C.")
    var watch = false

    @Option(1...86_400, help: ArgumentHelp("With --watch: seconds between two runs; 10 unless given.", valueName: "N"))
    var interval: Int?

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard watch || interval == nil else { throw ValidationError("--interval goes with --watch.") }
        guard !(watch && name == "list") else { throw ValidationError("The list of reports does not change.") }
        if let odd = variables.first(where: { !$0.contains("=") }) {
            throw ValidationError("--set \(odd): write --set name=value.")
        }
    }

    func run() async throws {
        guard name != "list" else { return form.show(Self.list) }
        guard let file = Reports.all.first(where: { $0.name == name }) else {
            throw Failure("There is no report \(name); see `perennial report list`.")
        }
        let statement = ReportStatement(file.text)
        let values = try statement.values(given, report: name)
        let settings = try flags.settings(needing: [.database])
        guard watch else {
            let (listing, emptiness) = try await Self.listing(of: statement, values, settings)
            show(listing, emptiness)
            if listing.isFinding(of: name) { throw ExitStatus.foundDifference }
            return
        }
        await keepLooking(everySeconds: interval ?? Self.intervalSeconds, isTable: form.format == .table) {
            try await Self.listing(of: statement, values, settings)
        } show: { listing, emptiness in
            show(listing, emptiness)
        }
    }

    private func show(_ listing: Listing, _ emptiness: String?) {
        form.show(listing)
        if let emptiness { printError("perennial: \(emptiness)") }
    }

    private static var list: Listing {
        Listing(columns: ["name", "purpose"], rows: Reports.all.map { [.string($0.name), .string($0.purpose)] })
    }

    private var given: [String: String] {
        var given: [String: String] = [:]
        for variable in variables {
            let parts = variable.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            given[String(parts[0])] = String(parts[1])
        }
        let flags = ["from": from, "until": until, "bundle_id": app?.text, "by": by]
        return given.merging(flags.compactMapValues(\.self)) { _, flag in flag }
    }

    /// Runs a report, on a standby where there is one, and says why it has no rows.
    private static func listing(of statement: ReportStatement, _ values: [String], _ settings: Settings) async throws
        -> (Listing, emptiness: String?)
    {
        let logger = settings.logger
        let database = Database(
            DatabaseConfiguration(
                connectionString: settings.readDatabase ?? settings.database,
                addressSource: settings.readDatabase == nil
                    ? settings.databaseSource : SettingName.databaseReadURL.rawValue,
                statementTimeoutMilliseconds: minutesMax * 60_000)
        ) { logger.debug("\($0)") }
        do {
            try await statement.requireReadable(values, in: database)
            let listed = try await database.transaction {
                let listing = try Listing(of: statement, values, in: $0)
                return (listing, try listing.rows.isEmpty ? statement.emptiness(values, in: $0) : nil)
            }
            await database.close()
            return listed
        } catch {
            await database.close()
            throw advice(about: error, of: statement, values) ?? error
        }
    }

    /// Returns advice about a schema, table or function that is not there (SQLSTATE 3F000, 42P01 and 42883), and about a
    /// value that the report cannot use, such as a number that is too large (class 22); nil for any other error.
    private static func advice(
        about error: any Error, of statement: ReportStatement, _ values: [String]
    ) -> Failure? {
        guard let error = error as? DatabaseError, let state = error.sqlState else { return nil }
        if ["3F000", "42P01", "42883"].contains(state) {
            return Failure("The database has no Perennial schema, or an older one; run `perennial migrate` first.")
        }
        guard state.hasPrefix("22") else { return nil }
        return Failure((statement.typed(values).map(\.advice) + [error.message]).joined(separator: " "))
    }
}

/// A report's text as one statement, with the few features of psql that reports use. Lines that begin with a backslash are
/// dropped, but a `\set` in them gives a variable's default. `:'name'` becomes the value as a literal, as in psql. A
/// parameter would not do: the planner knows a literal, and a date is read once and not for each row.
struct ReportStatement: Sendable, Hashable {
    /// The text without psql's lines and comments, still with variables.
    private let text: String
    /// The variables in the order of their first use.
    let variables: [String]
    let defaults: [String: String]

    init(_ file: String) {
        var defaults: [String: String] = [:]
        var lines: [Substring] = []
        for line in file.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            guard line.hasPrefix("\\") else {
                if !line.hasPrefix("--") { lines.append(line) }
                continue
            }
            let words = line.split(separator: " ").drop { $0 != "\\set" }.dropFirst().prefix { !$0.hasPrefix("\\") }
            guard let name = words.first else { continue }
            defaults[String(name)] = Self.unquoted(words.dropFirst().joined(separator: " "))
        }
        let body = lines.joined(separator: "\n").trimmingCharacters(in: .whitespacesAndNewlines)
        var variables: [String] = []
        for match in body.matches(of: Self.variable) where match.output.colon.isEmpty {
            let name = String(match.output.name)
            if !variables.contains(name) { variables.append(name) }
        }
        text = body.hasSuffix(";") ? String(body.dropLast()) : body
        self.variables = variables
        self.defaults = defaults
    }

    /// Returns the statement with the variables' literals, which PostgreSQL made, in the order of `variables`.
    func sql(literals: [String]) -> String {
        let literals = Dictionary(uniqueKeysWithValues: zip(variables, literals))
        return text.replacing(Self.variable) { match in
            // Two colons are a cast.
            guard match.output.colon.isEmpty, let literal = literals[String(match.output.name)] else {
                return String(match.output.0)
            }
            return literal
        }
    }

    /// Returns the variables' values in their order. Throws when a given name is no variable, or a value is missing.
    func values(_ given: [String: String], report: String) throws -> [String] {
        if let stray = given.keys.sorted().first(where: { !variables.contains($0) }) {
            let known = variables.isEmpty ? "it has no variables" : "it has \(variables.joined(separator: ", "))"
            throw Failure("The report \(report) does not read \(stray); \(known).")
        }
        // PostgreSQL takes +05:30 and UTC+3 for zones west of Greenwich, by the rule of POSIX.
        if let zone = given["time_zone"], zone.contains(#/^[^A-Za-z]|^[^/]*[+-][0-9]/#) {
            throw Failure("The time zone \(zone) is an offset; name a zone, such as Europe/Berlin.")
        }
        return try variables.map { name in
            guard let value = given[name] ?? defaults[name] else {
                throw Failure("The report \(report) needs a value for \(name); give --set \(name)=VALUE.")
            }
            return value
        }
    }

    private static var variable: Regex<(Substring, colon: Substring, name: Substring)> {
        #/(?<colon>:?):'(?<name>[A-Za-z_][A-Za-z0-9_]*)'/#
    }

    private static func unquoted(_ text: String) -> String {
        guard text.count >= 2, text.hasPrefix("'"), text.hasSuffix("'") else { return text }
        return String(text.dropFirst().dropLast())
    }
}

extension ReportStatement {
    /// What PostgreSQL reads a variable as, where it is not text.
    enum Form: String {
        case instant, number, zone

        /// What a person has to write.
        var words: String {
            switch self {
            case .instant: Instant.form
            case .number: "a whole number, such as 30"
            case .zone: "the name of a zone, such as Europe/Berlin"
            }
        }
    }

    static let forms: [String: Form] = [
        "from": .instant, "until": .instant, "at": .instant, "as_known_at": .instant, "known_before": .instant,
        "known_after": .instant, "time_zone": .zone, "minutes": .number, "days": .number, "months": .number,
    ]

    /// Throws where PostgreSQL cannot read a value that was given, whether the report has rows to read it for or not.
    func requireReadable(_ values: [String], in database: Database) async throws {
        let read = Statement(name: Queries.readValue.name, sql: Queries.readValue.text)
        for (value, form, advice) in typed(values) {
            do {
                _ = try await database.query(read, [.text(value), .text(form.rawValue)])
            } catch {
                throw error.sqlState?.hasPrefix("22") == true ? Failure(advice) : error
            }
        }
    }

    /// The values that were given for variables that are no text, each with the sentence that says what to give.
    func typed(_ values: [String]) -> [(value: String, form: Form, advice: String)] {
        zip(variables, values).compactMap { name, value in
            guard let form = Self.forms[name], value != defaults[name] else { return nil }
            let flag = ["from", "until"].contains(name) ? "--\(name)" : "--set \(name)"
            return (value, form, "\(flag) is '\(value)'; give \(form.words).")
        }
    }

    /// Returns why a report has no rows, in one line.
    func emptiness(_ values: [String], in transaction: Transaction) throws -> String {
        let given = Dictionary(zip(variables, values)) { first, _ in first }
        func value(_ name: String) -> String? {
            given[name].flatMap { $0.isEmpty ? nil : $0 }
        }
        let rows = try transaction.query(
            Statement(name: Queries.whyNoRows.name, sql: Queries.whyNoRows.text),
            [
                .text(value("from")), .text(value("until")), .text(value("time_zone")), .text(value("bundle_id")),
                .text(value("environment")),
            ])
        guard let row = rows.first else { return "No rows." }
        if try row.bool("is_reversed") {
            return "No rows: --from \(value("from") ?? "") is not before --until \(value("until") ?? "")."
        }
        if try row.bool("is_ahead") { return "No rows: --from \(value("from") ?? "") is in the future." }
        if try row.bool("has_no_app") { return "No rows: there is no app yet; add one with `perennial app add`." }
        let whose = value("bundle_id") ?? "any app"
        if try row.bool("has_no_receipt") { return "No rows: there is no receipt of \(whose) yet." }
        if try row.bool("is_elsewhere") {
            return "No rows: the receipts of \(whose) are of the other environment; see --set environment=Sandbox."
        }
        return variables.contains("from")
            ? "No rows: nothing that is stored belongs into this report." : "No rows: there is nothing to report."
    }
}

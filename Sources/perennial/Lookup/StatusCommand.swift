import ArgumentParser
import Ledger
import Server

/// `perennial status`
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Says what is due, overdue and in flight, what is paused, and where the feed stands.",
        discussion: """
            Examples:
              perennial status
              perennial status --watch
            """)

    /// The formats of a status.
    enum Form: String, ExpressibleByArgument, CaseIterable {
        case table
        case json
    }

    @Flag(help: "Show it again and again until Ctrl-C; an outage of the database is shown too.")
    var watch = false

    @Option(help: ArgumentHelp("With --watch: seconds between two looks.", valueName: "N"))
    var everySeconds = 2

    @Option(help: "table for people, or json, which is stable.")
    var format = Form.table

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard (1...3_600).contains(everySeconds) else {
            throw ValidationError("--every-seconds is a number from 1 to 3600.")
        }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        guard watch else {
            return show(rendered(try await withLedger(settings) { try await $0.operations.status() }))
        }
        try await withUncheckedLedger(settings, isBrief: true) { ledger in
            while !Task.isCancelled {
                let text: String
                do {
                    text = rendered(try await ledger.operations.status())
                } catch {
                    text = ExitStatus.sentence(for: error)
                }
                if format == .table { Terminal.clear() }
                show(text)
                await pause(seconds: everySeconds)
            }
        }
    }

    private func show(_ text: String) {
        switch format {
        case .table: printLine(text)
        case .json: printExactly(text)
        }
    }

    private func rendered(_ status: LedgerStatus) -> String {
        switch format {
        case .table: status.text
        case .json: status.json.rendered(pretty: !watch)
        }
    }
}

import ArgumentParser
import Foundation
import JSON
import Tracking

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "status", "Says what is due, overdue and in flight, what is paused, and where the feed stands.",
        notes: """
            Exit status: 0 healthy, 1 something needs attention, which standard error says in one line, or the status \
            could not be read. With --watch it runs until SIGINT (Ctrl-C) or SIGTERM, which is status 0.
            """,
        examples: """
            perennial status
            perennial status --watch
            """)

    private static let intervalSeconds = 2

    @Flag(help: "Show it again and again until Ctrl-C; an outage of the database is shown too.")
    var watch = false

    @Option(1...86_400, help: ArgumentHelp("With --watch: seconds between two looks; 2 unless given.", valueName: "N"))
    var interval: Int?

    @Option(help: "table for people, or json, which is stable.")
    var format = TableForm.table

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        guard watch || interval == nil else { throw ValidationError("--interval goes with --watch.") }
    }

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        guard watch else {
            let status = try await withLedger(settings) { try await $0.operations.status() }
            show(rendered(status))
            let attention = status.attention
            guard attention.isEmpty else { throw Failure("Needs attention: \(attention.joined(separator: "; ")).") }
            return
        }
        try await withUncheckedLedger(settings, isBrief: true) { ledger in
            await keepLooking(everySeconds: interval ?? Self.intervalSeconds, isTable: format == .table) {
                try await ledger.operations.status()
            } show: {
                show(rendered($0))
            }
        }
    }

    private func show(_ text: String) {
        switch format {
        case .table: printStyled(text)
        case .json: printExactly(text)
        }
    }

    private func rendered(_ status: LedgerStatus) -> String {
        switch format {
        case .table: status.text(in: Terminal.style)
        case .json: status.json.rendered(pretty: !watch)
        }
    }
}

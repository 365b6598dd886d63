import ArgumentParser
import Tracking

struct FeedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "feed", "Gives the feed of events a new id.",
        examples: "perennial feed renew --yes",
        subcommands: [FeedRenewCommand.self])
}

struct FeedRenewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "renew", "Gives the feed a new id, after the database went back to an earlier time in its own place.",
        notes: """
            Run it after a recovery to a point in time or from a snapshot of the disk, before any worker starts. It is \
            not needed for a dump that was restored elsewhere, which has a new id by itself, nor for a promoted \
            standby. Cursors of the former id are refused from then on (409), so every consumer reads the feed again \
            from its start. A second run gives another new id, unless --instead-of names the former id.
            """,
        examples: """
            perennial feed renew --yes
            perennial feed renew --instead-of 6fd05f2e-3b6c-4d5c-9a35-6f1f0c1d7a10 --yes
            """)

    @Option(help: ArgumentHelp("Renew the feed of this id only, and do nothing where it has another.", valueName: "ID"))
    var insteadOf: String?

    @Flag(help: "Do it; without this flag the command changes nothing.")
    var yes = false

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        guard yes else {
            throw Failure(
                "Nothing was changed: every consumer of the feed would read anew what it mirrors; add --yes if the database "
                    + "went back to an earlier time.")
        }
        let renewal = try await flags.ledger { try await $0.feed.renew(insteadOf: insteadOf) }
        printLine(
            renewal?.text ?? "The feed has another id than \(insteadOf ?? "that one") already; nothing was changed.")
    }
}

extension FeedRenewal {
    var text: String { "The feed's id is \(feed) instead of \(former); consumers read anew what they mirror." }
}

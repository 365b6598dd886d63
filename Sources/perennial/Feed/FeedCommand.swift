import ArgumentParser
import Ledger

/// `perennial feed`
struct FeedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed",
        abstract: "Gives the feed of events a new id.",
        discussion: """
            Example:
              perennial feed renew --yes
            """,
        subcommands: [FeedRenewCommand.self])
}

/// `perennial feed renew`
struct FeedRenewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract: "Gives the feed a new id, after the database went back to an earlier time in its own place.",
        discussion: """
            For a recovery to a point in time or a snapshot of the disk, before any worker starts. A dump that was restored
            elsewhere has a new id by itself, and a promoted standby keeps its own rightly. Cursors of the former id are refused
            from then on (409), so that every consumer reads anew what it mirrors. Running it again renews again, unless
            --instead-of names the id that was to go.

            Examples:
              perennial feed renew --yes
              perennial feed renew --instead-of 6fd05f2e-3b6c-4d5c-9a35-6f1f0c1d7a10 --yes
            """)

    @Option(help: ArgumentHelp("Renew the feed of this id only, and do nothing where it has another.", valueName: "ID"))
    var insteadOf: String?

    @Flag(help: "Do it; nothing is done without.")
    var yes = false

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        guard yes else {
            throw Failure(
                "Nothing was changed: every consumer of the feed would read anew what it mirrors; add --yes if the database "
                    + "went back to an earlier time.")
        }
        let renewal = try await withLedger(settings) { try await $0.renewFeed(insteadOf: insteadOf) }
        printLine(
            renewal?.text ?? "The feed has another id than \(insteadOf ?? "that one") already; nothing was changed.")
    }
}

extension FeedRenewal {
    /// The result, for human readers.
    var text: String { "The feed's id is \(feed) instead of \(former); consumers read anew what they mirror." }
}

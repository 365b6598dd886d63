import ArgumentParser
import Ledger
import Server
import Subscriptions

/// `perennial app claims`
struct AppClaimsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "claims",
        abstract: "Lists what Apple's signed texts about an app state and this version does not read.",
        discussion: """
            Apple adds claims to its texts, and words to claims. What a version does not read stays in the stored texts, \
            decides nothing and is counted here: the kind of text with the place of the claim, and for a new word the \
            word. A claim that no text states for 30 days is forgotten. With a name the command prints one text that \
            states it.

            Examples:
              perennial app claims com.example.app
              perennial app claims com.example.app transaction.newClaim | perennial explain --signed -
            """)

    @Argument(help: ArgumentHelp("Apple's bundle id.", valueName: "B"))
    var bundleID: BundleID

    @Argument(help: ArgumentHelp("A claim of the list: print a text that states it.", valueName: "CLAIM"))
    var claim: String?

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let settings = try flags.settings(needing: [.database])
        guard let claim else {
            return form.show(
                Listing(claims: try await withLedger(settings) { try await $0.intake.unreadClaims(of: bundleID) }))
        }
        let example = try await withLedger(settings) { try await $0.intake.unreadExample(of: claim, app: bundleID) }
        guard let example else {
            throw Failure("No text that states \(claim) is kept; the next one will be.")
        }
        printLine(example)
    }
}

extension Listing {
    fileprivate init(claims: [CountedClaim]) {
        self.init(columns: ["claim", "unreadable", "texts", "first_seen_at", "last_seen_at"])
        rows = claims.map { claim in
            [
                .string(claim.name), .bool(claim.isUnreadable), .integer(claim.texts),
                .string(claim.firstSeenAt.iso8601), .string(claim.lastSeenAt.iso8601),
            ]
        }
    }
}

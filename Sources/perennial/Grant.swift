import ArgumentParser
import Foundation
import Subscriptions
import Tracking

struct GrantFlags: ParsableArguments {
    @Option(help: ArgumentHelp("The entitlement, as the catalog names it.", valueName: "E"))
    var entitlement: String

    @OptionGroup var decision: DecisionFlags
    @OptionGroup var flags: CustomerFlags
}

struct DecisionFlags: ParsableArguments {
    @Option(help: ArgumentHelp("Why, in words for the next person who asks.", valueName: "R"))
    var reason: String

    @Option(help: ArgumentHelp("Who decides; the name of the system's user unless given.", valueName: "WHO"))
    var by: String = NSUserName()

    var decision: ManualDecision {
        get throws(LedgerError) { try ManualDecision(by: by, because: reason) }
    }
}

struct GrantCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "grant", "Grants a customer an entitlement manually, from now until an instant.",
        notes: """
            Lookups show `by_hand`, `explain` shows the author and the reason, and reports about money leave it out. A \
            new grant replaces the customer's manual grant of the same entitlement. Without --until it has no end. \
            Without --force, an entitlement that no product of the app grants is refused as misspelt.
            """,
        examples: """
            perennial grant --app com.example.app --customer c1 --entitlement pro --until 2026-12-31T00:00:00Z \\
              --reason "outage of 20 November"
            """)

    @OptionGroup var grant: GrantFlags

    @Option(instant: ArgumentHelp("When it ends, in ISO 8601.", valueName: "T"))
    var until: Instant?

    @Flag(help: "Grant an entitlement that no product of the app grants yet.")
    var force = false

    func run() async throws {
        let decision = try grant.decision.decision
        let given = try await grant.flags.ledger { ledger in
            _ = try await ledger.apps.app(grant.flags.app)
            if !force {
                try await ledger.apps.requireKnownEntitlement(
                    grant.entitlement, of: grant.flags.app, orElse: "Say --force for a name to come.")
            }
            return try await ledger.customers.grant(
                grant.entitlement, to: grant.flags.customer, of: grant.flags.app, until: until, deciding: decision)
        }
        printLine(
            "\(grant.flags.customer) has \(given.entitlement) \(given.until.map { "until \($0.iso8601)" } ?? "without an end")."
        )
    }
}

struct RevokeGrantCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "revoke-grant", "Ends a manual grant, from now.",
        notes: "Lookups with --known-at still find the grant. Entitlements by Apple's answers do not change.",
        examples: """
            perennial revoke-grant --app com.example.app --customer c1 --entitlement pro --reason "given by mistake"
            """)

    @OptionGroup var grant: GrantFlags

    func run() async throws {
        let decision = try grant.decision.decision
        let ended = try await grant.flags.ledger { ledger in
            try await ledger.customers.revokeGrant(
                of: grant.entitlement, from: grant.flags.customer, of: grant.flags.app, deciding: decision)
        }
        printLine(
            """
            \(grant.flags.customer) has no manual grant of \(ended.entitlement) any more; \(ended.givenBy) gave it: \
            \(ended.reason)
            """)
    }
}

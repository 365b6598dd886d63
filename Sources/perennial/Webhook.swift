import ArgumentParser
import JSON
import Server
import Subscriptions
import Tracking

extension StoreEnvironment: ExpressibleByArgument {}

struct WebhookCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "webhook", "Calls your services when something changes.",
        notes: """
            A webhook gets every event until it answers 2xx, in the order of each subscription. docs/webhooks.md says what \
            it gets and how to check the signature.
            """,
        examples: "perennial webhook add --url https://example.com/perennial --app com.example.app",
        subcommands: [
            WebhookAddCommand.self, WebhookListCommand.self, WebhookShowCommand.self, WebhookSetCommand.self,
            WebhookRemoveCommand.self, WebhookRotateSecretCommand.self, WebhookTestCommand.self,
            WebhookSkipCommand.self, WebhookReplayCommand.self,
        ])
}

struct WebhookAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "add", "Adds a webhook and prints its secret, the only time it can be seen.",
        notes: """
            The secret is all that standard output gets; the webhook's number goes to standard error. App, kinds and \
            environment never change: another filter is another webhook.
            """,
        examples: """
            perennial webhook add --url https://example.com/perennial --app com.example.app > webhook-secret
            perennial webhook add --url http://10.0.0.7:9000/ --kinds subscription.started,refund.granted --from beginning
            """)

    @Option(help: ArgumentHelp("Where to send: https, or http to a private address.", valueName: "U"))
    var url: String

    @Option(help: ArgumentHelp("The only app whose events it gets; every app unless given.", valueName: "B"))
    var app: BundleID?

    @Option(help: ArgumentHelp("The kinds of events, separated by commas; every kind unless given.", valueName: "K"))
    var kinds: String?

    @Option(help: ArgumentHelp("Production or Sandbox; both unless given.", valueName: "E"))
    var environment: StoreEnvironment?

    @Option(LedgerWebhooks.concurrencyAllowed, help: ArgumentHelp("The most calls at a time.", valueName: "N"))
    var concurrency = LedgerWebhooks.concurrencyUsual

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "now (unless given), beginning, a position, or an instant (a minute earlier).", valueName: "START"),
        transform: { try WebhookStart($0) })
    var from = WebhookStart.now

    @Option(
        help: ArgumentHelp("A file with your own secret (whsec_…), or -; one is made unless given.", valueName: "F|-"))
    var secretFile: InputFile?

    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let own = try secretFile?.webhookSecret()
        let (webhook, secret) = try await flags.ledger(sealing: true) {
            try await $0.webhooks.add(
                url: url, app: app, kinds: kinds.map { $0.split(separator: ",").map(String.init) },
                environment: environment, concurrency: concurrency, secret: own, from: from)
        }
        printError("Webhook \(webhook.id) gets the events after position \(webhook.position). Its secret:")
        try printSecret(
            secret.text, ifLost: "`perennial webhook rotate-secret \(webhook.id)` makes and prints another secret.")
    }
}

struct WebhookListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "list", "Lists the webhooks.",
        examples: "perennial webhook list")

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: SettingsFlags

    func run() async throws {
        let columns = [
            "webhook_id", "bundle_id", "url", "kinds", "environment", "concurrency", "state", "reason", "state_since",
            "rest_until", "position", "behind", "waiting", "waiting_since", "created_at",
        ]
        form.show(Listing(columns, of: try await flags.ledger { try await $0.webhooks.all() }.map { $0.json() }))
    }
}

struct WebhookShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "show", "Shows what waits for a webhook, and why.",
        notes: """
            One row for each stream (a subscription, a one-time purchase or a customer) whose first event waits; the \
            oldest first, at most 1000.
            """,
        examples: "perennial webhook show 1")

    @OptionGroup var form: FormatFlag
    @OptionGroup var webhook: WebhookFlags

    func run() async throws {
        let (found, waiting) = try await webhook.ledger {
            (try await $0.webhooks.webhook(webhook.id), try await $0.webhooks.waiting(for: webhook.id, limit: 1_000))
        }
        printError(
            "Webhook \(found.id) (\(found.shownURL)) is \(found.state.rawValue), at position \(found.position), "
                + "\(found.behind) behind the feed.\(found.reason.map { " \($0)" } ?? "")")
        let columns = [
            "position", "kind", "bundle_id", "original_transaction_id", "customer", "attempts", "next_at", "since",
            "status", "reason",
        ]
        form.show(Listing(columns, of: waiting.map(\.json)))
    }
}

struct WebhookSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "set", "Changes a webhook's URL or concurrency, or turns it on or off.",
        notes: "What a webhook missed while it was off is sent when it is on again.",
        examples: """
            perennial webhook set 1 --off
            perennial webhook set 1 --url https://example.com/new --on
            """)

    @Option(help: ArgumentHelp("Where to send.", valueName: "U"))
    var url: String?

    @Option(LedgerWebhooks.concurrencyAllowed, help: ArgumentHelp("The most calls at a time.", valueName: "N"))
    var concurrency: Int?

    @Flag(help: "Send.")
    var on = false

    @Flag(help: "Send nothing.")
    var off = false

    @OptionGroup var webhook: WebhookFlags

    func validate() throws {
        guard !(on && off), url != nil || concurrency != nil || on || off else {
            throw ValidationError("Give --url, --concurrency, and one of --on and --off.")
        }
    }

    func run() async throws {
        try await webhook.ledger {
            try await $0.webhooks.set(
                webhook.id, url: url, concurrency: concurrency, isOn: on ? true : off ? false : nil)
        }
        printLine("Changed webhook \(webhook.id).")
    }
}

struct WebhookRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "remove", "Removes a webhook with everything that waits for it.",
        examples: "perennial webhook remove 1")

    @OptionGroup var webhook: WebhookFlags

    func run() async throws {
        try await webhook.ledger { try await $0.webhooks.remove(webhook.id) }
        printLine("Removed webhook \(webhook.id).")
    }
}

struct WebhookRotateSecretCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "rotate-secret", "Gives a webhook a new secret and prints it, the only time it can be seen.",
        notes: "The secrets before it sign too, so that the receiver can change over. Then --finish ends them.",
        examples: """
            perennial webhook rotate-secret 1 > webhook-secret
            perennial webhook rotate-secret 1 --finish
            """)

    @Option(
        help: ArgumentHelp("A file with your own secret (whsec_…), or -; one is made unless given.", valueName: "F|-"))
    var secretFile: InputFile?

    @Flag(help: "Make no new secret; end those before the newest.")
    var finish = false

    @OptionGroup var webhook: WebhookFlags

    func validate() throws {
        guard !finish || secretFile == nil else { throw ValidationError("--finish takes no secret.") }
    }

    func run() async throws {
        let own = try secretFile?.webhookSecret()
        let secret = try await webhook.ledger(sealing: true) {
            try await $0.webhooks.rotateSecret(of: webhook.id, to: own, finish: finish)
        }
        guard let secret else { return printLine("Only the newest secret of webhook \(webhook.id) signs now.") }
        try printSecret(secret.text, ifLost: "The new secret is lost: run this command again.")
    }
}

struct WebhookTestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "test", "Sends a message of the type webhook.test at once, and says what came back.",
        examples: "perennial webhook test 1")

    @OptionGroup var webhook: WebhookFlags

    func run() async throws {
        let outcome = try await webhook.tracker { try await $0.testWebhook(webhook.id) }
        guard case .delivered = outcome else { throw Failure("The test failed: \(outcome.sentence)") }
        printLine(outcome.sentence)
    }
}

struct WebhookSkipCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "skip", "Gives an event up that a receiver cannot take; its stream goes on.",
        examples: """
            perennial webhook skip 1 --position 4711 --reason "the receiver knows no such customer"
            """)

    @Option(1...Int64.max, help: ArgumentHelp("The event's position; see `perennial webhook show`.", valueName: "N"))
    var position: Int64

    @Option(help: ArgumentHelp("Why, in words for the next person who asks.", valueName: "R"))
    var reason: String

    @OptionGroup var webhook: WebhookFlags

    func run() async throws {
        try await webhook.ledger { try await $0.webhooks.skip(position, of: webhook.id, because: reason) }
        printLine("Skipped the event at position \(position) for webhook \(webhook.id).")
    }
}

struct WebhookReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "replay", "Sends a part of the feed once more, such as for a mirror that was lost or after a new catalog.",
        notes: "The ids of the messages are those of the first time.",
        examples: """
            perennial webhook replay 1 --from beginning
            perennial webhook replay 1 --from 2026-11-20T12:00:00Z
            """)

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("beginning, a position, or an instant (a minute earlier).", valueName: "START"),
        transform: { try WebhookStart($0) })
    var from: WebhookStart

    @OptionGroup var webhook: WebhookFlags

    func run() async throws {
        try await webhook.ledger { try await $0.webhooks.replay(webhook.id, from: from) }
        printLine("Webhook \(webhook.id) sends the feed again from there on.")
    }
}

struct WebhookFlags: LedgerFlags {
    @Argument(help: ArgumentHelp("The webhook's number; see `perennial webhook list`.", valueName: "ID"))
    var id: Int32

    @OptionGroup var base: SettingsFlags
}

extension InputFile {
    func webhookSecret() throws -> WebhookSecret {
        try WebhookSecret(secret("the webhook's secret (whsec_…)"))
    }
}

extension Listing {
    fileprivate init(_ columns: [String], of objects: [JSONValue]) {
        self.init(
            columns: columns,
            rows: objects.map { object in columns.map { object[$0 == "bundle_id" ? "app" : $0] ?? .null } })
    }
}

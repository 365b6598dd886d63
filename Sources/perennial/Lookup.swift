import AppStore
import ArgumentParser
import JSON
import Server
import Subscriptions
import Tracking

struct EntitlementsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "entitlements", "Says what a customer may use, until when, why, and how fresh that is.",
        notes: """
            --at asks about another moment; --known-at asks what was known then. An unknown customer has no \
            entitlements.
            """,
        examples: "perennial entitlements --app com.example.app --customer c1 --at 2026-01-31T12:00:00Z")

    @Option(instant: ArgumentHelp("The moment asked about, in ISO 8601; now unless given.", valueName: "T"))
    var at: Instant?

    @Option(instant: ArgumentHelp("What was known at this moment, in ISO 8601; now unless given.", valueName: "T"))
    var knownAt: Instant?

    @OptionGroup var form: FormatFlag
    @OptionGroup var flags: CustomerFlags

    func run() async throws {
        let entitlements = try await flags.ledger { ledger in
            _ = try await ledger.apps.app(flags.app)
            return try await ledger.customers.entitlements(
                app: flags.app, customer: flags.customer, at: at, knownAt: knownAt)
        }
        form.show(
            entitlements.listing([
                ("entitlement", { .string($0.name) }), ("granted", { .bool($0.granted) }),
                ("until", { .optional($0.until) }), ("product_id", { .optional($0.productID?.text) }),
                ("state", { .optional($0.state) }), ("reason", { .optional($0.reason) }),
                ("environment", { .string($0.environment.rawValue) }), ("basis", { .string($0.basis) }),
                ("as_of", { .optional($0.asOf) }), ("checked_at", { .optional($0.checkedAt) }),
                ("ended_at", { .optional($0.endedAt) }),
            ]))
    }
}

struct ExplainCommand: AsyncParsableCommand {
    static let bytesMax = 64 << 20

    static let configuration = CommandConfiguration(
        "explain", "Says what a customer may use and why, or what one answer or signed text of Apple's means.",
        notes: """
            With --app and --customer it explains from what is stored: every entitlement, what gives it, which of \
            Apple's answers decided, and which field there. With --response it reads one response body, without \
            database or network; any body gets an answer: what cannot be read is indeterminate. With --signed it verifies a signed text \
            of a notification, of the Server API or of a device, and shows its chain and claims. The JSON forms \
            are stable.
            """,
        examples: """
            perennial explain --app com.example.app --customer c1
            perennial explain --app com.example.app --customer c1 --entitlement pro --at 2026-01-31T12:00:00Z
            perennial explain --response answer.json
            perennial explain --response - --bundle-id com.example.app --at 2026-01-31T12:00:00Z --format json
            perennial explain --response new.json --previous old.json
            perennial explain --signed notification.json
            """)

    @Option(help: ArgumentHelp("Explain a stored customer of this app.", valueName: "B"))
    var app: BundleID?

    @Option(help: ArgumentHelp("Your own id of the customer.", valueName: "C"))
    var customer: String?

    @Option(help: ArgumentHelp("With --customer: only this entitlement.", valueName: "E"))
    var entitlement: String?

    @Option(help: ArgumentHelp("An answer's file, or - for standard input.", valueName: "FILE|-"))
    var response: InputFile?

    @Option(
        help: ArgumentHelp(
            "A signed text's file, or a notification's body, or - for standard input.", valueName: "FILE|-"))
    var signed: InputFile?

    @Option(help: ArgumentHelp("With --response: reject an answer about any other app.", valueName: "B"))
    var bundleId: BundleID?

    @Option(
        instant: ArgumentHelp(
            "The moment asked about, in ISO 8601; now, or the answer's request date, unless given.", valueName: "T"))
    var at: Instant?

    @Option(help: "text for people, or json, which is stable.")
    var format = TextForm.text

    @Option(help: ArgumentHelp("With --response: an earlier answer, to show what changed since.", valueName: "FILE"))
    var previous: InputFile?

    @OptionGroup var flags: SettingsFlags

    func validate() throws {
        let isStored = app != nil || customer != nil
        guard [isStored, response != nil, signed != nil].count(where: \.self) == 1, isStored || entitlement == nil,
            !isStored || (app != nil && customer != nil)
        else { throw ValidationError("Give --app with --customer, or --response, or --signed.") }
        guard response != nil || (bundleId == nil && previous == nil) else {
            throw ValidationError("--bundle-id and --previous go with --response.")
        }
        guard response?.path != "-" || previous?.path != "-" else {
            throw ValidationError("Only one of --response and --previous can be standard input.")
        }
        guard signed == nil || at == nil else {
            throw ValidationError("A signed text says when it was signed, so --signed takes no --at.")
        }
    }

    func run() async throws {
        if let response { return try explain(response) }
        if let signed { return try await explain(signed: signed) }
        guard let app, let customer else { return }
        let explanation = try await flags.ledger { ledger in
            let explanation = try await CustomerExplanation(
                in: ledger, app: app, customer: customer, entitlement: entitlement, at: at)
            if let entitlement, !explanation.namesRights {
                try await ledger.apps.requireKnownEntitlement(
                    entitlement, of: app, orElse: "`perennial catalog show` names them all.")
            }
            return explanation
        }
        show(text: explanation.text, json: explanation.json)
    }

    private func explain(_ response: InputFile) throws {
        let explanation = AnswerExplanation(
            body: try response.contents(bytesMax: Self.bytesMax), bundleID: bundleId, at: at,
            previous: try previous?.contents(bytesMax: Self.bytesMax), now: .wallClock)
        show(text: explanation.text, json: explanation.json)
    }

    private func explain(signed file: InputFile) async throws {
        let body = try file.contents(bytesMax: Self.bytesMax)
        let roots = try flags.settings(needing: []).appStoreRoots
        let verifier = SignedTextVerifier(trusting: try roots.map(SigningRoot.init) ?? .apple)
        let explanation = await SignedExplanation(body: body, by: verifier)
        show(text: explanation.text, json: explanation.json)
    }

    private func show(text: @autoclosure () -> String, json: @autoclosure () -> JSONValue) {
        switch format {
        case .text: printLine(text())
        case .json: printExactly(json().rendered(pretty: true))
        }
    }
}

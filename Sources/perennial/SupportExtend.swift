import AppStore
import ArgumentParser
import JSON
import Subscriptions
import Tracking

extension RenewalExtension.Reason: ExpressibleByArgument {}

struct ExtensionFlags: ParsableArguments {
    @Option(RenewalExtension.days, help: ArgumentHelp("How many days the customer gets.", valueName: "N"))
    var days: Int

    @Option(help: "What Apple is told as the reason: undeclared, satisfaction, outage or other.")
    var reason: RenewalExtension.Reason

    @Flag(help: "Extend again, though the same extension was done before. Apple allows two in a year.")
    var again = false

    func validate() throws {
        _ = try wanted
    }

    var wanted: RenewalExtension {
        get throws {
            guard let wanted = RenewalExtension(days: days, reason: reason) else {
                throw ValidationError("--days is a number from 1 to 90.")
            }
            return wanted
        }
    }
}

struct SupportExtendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "extend", "Extends a running subscription by some days, which the customer does not pay for.",
        notes: """
            Apple tells the customer. It refuses a subscription that is in a trial, over, in a billing retry or shared by \
            Family Sharing. The same command again is the same request; --again is another one. Workers ask Apple about \
            the subscription at once.
            """,
        examples:
            "perennial support extend --app com.example.app --original-transaction-id 1000000 --days 7 --reason outage")

    @Option(help: ArgumentHelp("The id of the subscription's first transaction.", valueName: "ID"))
    var originalTransactionId: String

    @OptionGroup var how: ExtensionFlags
    @OptionGroup var support: SupportFlags

    func run() async throws {
        try await support.make(.extend(originalTransactionID: originalTransactionId, try how.wanted), again: how.again)
    }
}

struct SupportExtendAllCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "extend-all", "Extends all running subscriptions of a product, such as after an outage.",
        notes: """
            Apple works on it for minutes to hours, and `extend-status` says how far it is. The same command again is the \
            same request, also after a crash. Apple reports each extended subscription by a notification; without \
            notifications Perennial sees it at the next planned check.
            """,
        examples: """
            perennial support extend-all --app com.example.app --product com.example.app.monthly --days 3 \\
              --reason outage --country USA --country CAN
            """)

    @Option(help: ArgumentHelp("Apple's id of the product.", valueName: "P"))
    var product: String

    @Option(
        help: ArgumentHelp("Only customers of this storefront, by its three letters; repeatable.", valueName: "USA"))
    var country: [String] = []

    @OptionGroup var how: ExtensionFlags
    @OptionGroup var support: SupportFlags

    func validate() throws {
        guard country.allSatisfy({ $0.count == 3 && $0.allSatisfy { $0.isASCII && $0.isUppercase } }) else {
            throw ValidationError("--country has three capital letters, such as USA.")
        }
    }

    func run() async throws {
        // The order of countries means nothing, so that it makes no other request.
        let countries = Set(country).sorted()
        try await support.make(.extendAll(productID: product, countries: countries, try how.wanted), again: how.again)
    }
}

struct SupportExtendStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "extend-status", "Says how far the extension of all subscriptions of a product is.",
        notes: "Without --request-id it is about the newest `extend-all` of the product.",
        examples: "perennial support extend-status --app com.example.app --product com.example.app.monthly")

    @Option(help: ArgumentHelp("Apple's id of the product.", valueName: "P"))
    var product: String

    @Option(help: ArgumentHelp("The identifier that `extend-all` showed.", valueName: "ID"))
    var requestId: String?

    @OptionGroup var support: SupportFlags

    func run() async throws {
        let (request, contents) = try await support.run { tracker, app in
            let environment = support.environment
            let stored = try await tracker.ledger.support.massExtension(of: product, in: environment, of: app)
            guard let request = requestId ?? stored else {
                throw Failure(
                    "No extension of all subscriptions of \(product) was asked for; see `perennial support extend-all`."
                )
            }
            let question = SupportQuestion.extensionStatus(productID: product, requestID: request)
            return (request, try await tracker.support(question, about: app, in: environment))
        }
        guard case .extensionStatus(let status) = contents else { throw Failure.otherAnswer }
        support.form.show(
            [status].listing([
                ("request_id", { _ in .string(request) }), ("complete", { .bool($0.isComplete) }),
                ("completed_at", { status in .optional(status.completedAt.map { Instant(milliseconds: $0) }) }),
                ("succeeded", { .integer($0.succeeded) }), ("failed", { .integer($0.failed) }),
            ]))
    }
}

extension ConsumptionReport.Delivery: ExpressibleByArgument {}
extension ConsumptionReport.Preference: ExpressibleByArgument {}

struct SupportConsumptionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        "consumption",
        "Answers a refund request: tells Apple what the customer used of a purchase, if the customer consents.",
        notes: """
            Apple asks by a notification CONSUMPTION_REQUEST and waits for 12 hours; `perennial status` names those that \
            wait for more than 10. Without the customer's consent nothing may be sent: --not-consented notes that, and \
            `status` does not name the request any more. What was sent is not sent again until Apple asks anew.
            """,
        examples: """
            perennial support consumption --app com.example.app --transaction-id 2000000123456789 --customer-consented \\
              --delivery delivered --consumed-percent 80 --prefer decline
            """)

    @Option(help: ArgumentHelp("The transaction that Apple asked about.", valueName: "ID"))
    var transactionId: String

    @Flag(help: "The customer has consented to Apple getting this.")
    var customerConsented = false

    @Flag(help: "The customer did not consent: nothing is sent.")
    var notConsented = false

    @Option(help: "delivered, quality_issue, wrong_item, server_outage or other.")
    var delivery = ConsumptionReport.Delivery.delivered

    @Flag(help: "The customer could try it before the purchase.")
    var sampled = false

    @Option(
        ConsumptionReport.percents,
        help: ArgumentHelp(
            "How much of it the customer used, in percent; not for subscriptions that renew.", valueName: "N"))
    var consumedPercent: Int?

    @Option(help: "What you would like Apple to decide: decline, full or prorated; a wish, no more.")
    var prefer: ConsumptionReport.Preference?

    @OptionGroup var support: SupportFlags

    func validate() throws {
        guard customerConsented != notConsented else {
            throw ValidationError(
                "Apple takes this only with the customer's consent: say --customer-consented if the customer consented, "
                    + "or --not-consented if not.")
        }
        guard report != nil else {
            throw ValidationError("--consumed-percent is a number from 0 to 100, and 0 for what was not delivered.")
        }
    }

    private var report: ConsumptionReport? {
        ConsumptionReport(delivery: delivery, sampled: sampled, consumedPercent: consumedPercent, preference: prefer)
    }

    func run() async throws {
        guard customerConsented, let report else {
            let noted = try await support.run { tracker, app in
                try await tracker.withholdConsumption(of: transactionId, about: app, in: support.environment)
            }
            return support.show(noted)
        }
        try await support.make(.consumption(transactionID: transactionId, report))
    }
}

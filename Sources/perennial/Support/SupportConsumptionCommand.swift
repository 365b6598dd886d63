import AppStore
import ArgumentParser
import Ledger
import Tracking

extension ConsumptionReport.Delivery: ExpressibleByArgument {}
extension ConsumptionReport.Preference: ExpressibleByArgument {}

/// `perennial support consumption`
struct SupportConsumptionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "consumption",
        abstract:
            "Answers a refund request: tells Apple what the customer used of a purchase, if the customer consents.",
        discussion: """
            Apple asks by a notification CONSUMPTION_REQUEST and waits for 12 hours; `perennial status` names those that \
            wait for more than 10. Without the customer's consent nothing may be sent: --not-consented notes that, and \
            `status` does not name the request any more. What was sent is not sent again until Apple asks anew.

            Example:
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
        help: ArgumentHelp(
            "How much of it the customer used, 0 to 100; not for subscriptions that renew.", valueName: "N"))
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
        ConsumptionReport(
            delivery: delivery, sampled: sampled, consumedPercent: consumedPercent, preference: prefer)
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

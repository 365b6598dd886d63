import AppStore
import ArgumentParser
import Ledger
import Server
import Subscriptions
import Tracking

/// `perennial support test-notification`
struct SupportTestCommand: AsyncParsableCommand {
    /// How long the command waits for Apple's first attempt, in seconds.
    private static let waitSeconds = 30.0
    /// The rest before Apple is asked about the attempt, in seconds.
    private static let restSeconds = 2.0

    static let configuration = CommandConfiguration(
        commandName: "test-notification",
        abstract: "Has Apple send a test notification, and says whether it arrived.",
        discussion: """
            It shows Apple's attempts to deliver the notification, and when Perennial stored it. It waits up to 30 seconds \
            for the first attempt; --token asks about an earlier one. Exit status 1 means that the notification did not \
            arrive. The address is the one in App Store Connect (`perennial app notifications`).

            Examples:
              perennial support test-notification --app com.example.app
              perennial support test-notification --app com.example.app --sandbox --token ce3af791-365e-4c60-841b_1
            """)

    @Option(help: ArgumentHelp("Ask what became of an earlier test notification.", valueName: "T"))
    var token: String?

    @OptionGroup var support: SupportFlags

    func run() async throws {
        let (sent, test, received) = try await support.run { tracker, app in
            let sent = try await sentToken(by: tracker, about: app)
            let test = try await fate(of: sent, by: tracker, about: app)
            return (sent, test, try await tracker.ledger.support.received(test?.uuid ?? "", for: app))
        }
        support.form.show(Listing(sent, test, received))
        guard received != nil else {
            throw Failure(
                "Perennial has not received the notification; check the address in App Store Connect, and that "
                    + "`perennial serve` can be reached. `--token \(sent)` asks again.")
        }
    }

    private func sentToken(by tracker: Tracker, about app: App) async throws -> String {
        if let token { return token }
        guard
            case .test(let token) = try await tracker.support(
                .testNotification, about: app, in: support.environment)
        else { throw Failure.otherAnswer }
        return token
    }

    /// Asks what became of a notification until there is an attempt; nil where Apple knows nothing of it in time.
    private func fate(of sent: String, by tracker: Tracker, about app: App) async throws -> TestNotification? {
        let end = ContinuousClock.now + .seconds(Self.waitSeconds)
        var last: TestNotification?
        while true {
            do {
                guard
                    case .testStatus(let test) = try await tracker.support(
                        .testStatus(token: sent), about: app, in: support.environment)
                else { throw Failure.otherAnswer }
                last = test
                if !test.attempts.isEmpty { return test }
            } catch let failure as SupportFailure where token == nil && failure.isRefusal && ContinuousClock.now < end {
                // Apple knows a test notification only a moment after it took the request.
            }
            guard ContinuousClock.now < end else { return last }
            try await Task.sleep(for: .seconds(Self.restSeconds))
        }
    }
}

extension Listing {
    /// A test notification: a row for each attempt to deliver it, or one without an attempt.
    fileprivate init(_ token: String, _ test: TestNotification?, _ received: Instant?) {
        self.init(columns: ["token", "notification_uuid", "attempted_at", "result", "received_at"])
        let attempts = test?.attempts.map { (JSONValue.instant($0.at), JSONValue.string($0.result)) } ?? []
        rows = (attempts.isEmpty ? [(.null, .null)] : attempts).map { at, result in
            [.string(token), .optional(test?.uuid), at, result, .optional(received)]
        }
    }
}

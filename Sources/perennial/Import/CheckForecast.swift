import Ledger
import Subscriptions
import Tracking

/// An estimate, as far as one is possible, of when Apple has been asked about everything that waits for a first answer.
struct CheckForecast {
    /// The receipts that waited at an earlier count, and the seconds since then. They show how fast an app without a
    /// limit is checked.
    var earlier: (waiting: [WaitingReceipts], seconds: Double)?
    /// The number of receipts stored since that count, by all apps together.
    var storedSince = 0

    /// Returns one sentence for each app with waiting receipts.
    func sentences(for waiting: [WaitingReceipts]) -> [String] {
        waiting.filter { $0.receipts > 0 }.map { app in
            "\(app.bundleID): \(app.receipts.of("receipt waits", "receipts wait")) for Apple's first answer; \(when(app, among: waiting))."
        }
    }

    private func when(_ app: WaitingReceipts, among waiting: [WaitingReceipts]) -> String {
        guard app.hasWorker else {
            let time = seconds(app).map { ": all in about \(Duration.seconds($0).inWords)" } ?? ""
            return "no worker is running; once `perennial worker` does, they are asked about\(time)"
        }
        if let seconds = seconds(app) {
            return "at \(rate(app.callsPerSecond)) calls a second all are asked about in about "
                + Duration.seconds(seconds).inWords
        }
        guard let measured = measured(app, among: waiting) else {
            return "the app has no limit of calls, and how fast Apple answers is not known yet"
        }
        return "at the \(rate(measured)) a second seen during this import all are asked about in about "
            + Duration.seconds(Double(app.receipts) / measured).inWords
    }

    /// Returns the time by the app's own limit; nil without one.
    private func seconds(_ app: WaitingReceipts) -> Double? {
        app.callsPerSecond > 0 ? Double(app.receipts) / app.callsPerSecond : nil
    }

    /// Returns the answers per second since the earlier look; nil when there was none, or other apps distort the count.
    private func measured(_ app: WaitingReceipts, among waiting: [WaitingReceipts]) -> Double? {
        guard let earlier, earlier.seconds >= 1, waiting.count(where: { $0.receipts > 0 }) == 1,
            let before = earlier.waiting.first(where: { $0.bundleID == app.bundleID })
        else { return nil }
        let answered = before.receipts + Int64(storedSince) - app.receipts
        return answered > 0 ? Double(answered) / earlier.seconds : nil
    }

    private func rate(_ callsPerSecond: Double) -> String {
        let tenths = (callsPerSecond * 10).rounded() / 10
        return tenths == tenths.rounded() ? "\(Int(tenths))" : "\(tenths)"
    }
}

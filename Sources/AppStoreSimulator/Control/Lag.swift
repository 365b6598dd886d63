import Synchronization

/// A delay of the answers about some accounts: verifyReceipt, or the Server API, shows them as they were so many seconds ago.
package struct Lag: Codable, Sendable {
    /// The longest delay, in seconds.
    package static let secondsMax = 86_400.0

    /// The delay.
    package var seconds: Double
    /// What lags; nil means verifyReceipt.
    package var channel: StoreChannel?
    /// The customer of the account; nil means a share of all accounts.
    package var customer: String?
    /// The share of the accounts, 0 to 1, drawn by the seed; nil means all.
    package var share: Double?

    /// Creates a delay for one customer's account, or for all accounts.
    package init(seconds: Double, customer: String? = nil) {
        self.seconds = seconds
        self.customer = customer
    }
}

/// The delays in force. The newest one that is about an account decides.
final class Lags: Sendable {
    private let seed: UInt64
    private let lags = Mutex<[Lag]>([])
    private let hasNone = Atomic<Bool>(true)

    init(seed: UInt64) {
        self.seed = seed
    }

    var count: Int { lags.withLock { $0.count } }

    func add(_ lag: Lag) { change { $0.append(lag) } }

    func clear() { change { $0 = [] } }

    /// Returns the delay of the answers about an account, in milliseconds.
    func milliseconds(of account: Int) -> Int64 {
        guard !hasNone.load(ordering: .relaxed) else { return 0 }
        var numbers = SeededGenerator(seed: seed ^ 0x1A66, stream: UInt64(account))
        let draw = numbers.unit()
        let lag = lags.withLock { lags in
            lags.last { lag in
                guard let customer = lag.customer else { return draw < lag.share ?? 1 }
                return CustomerName.index(of: customer) == account
            }
        }
        return Int64((lag?.seconds ?? 0) * 1000)
    }

    private func change(_ body: (inout [Lag]) -> Void) {
        lags.withLock { lags in
            body(&lags)
            hasNone.store(lags.isEmpty, ordering: .relaxed)
        }
    }
}

extension Simulator {
    /// Delays the answers about some accounts.
    package func add(_ lag: Lag) {
        switch lag.channel ?? .verifyReceipt {
        case .verifyReceipt: lags.add(lag)
        case .serverAPI: serverLags.add(lag)
        }
    }

    /// Removes all delays.
    package func clearLags() {
        lags.clear()
        serverLags.clear()
    }
}

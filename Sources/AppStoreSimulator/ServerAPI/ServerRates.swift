import Synchronization

/// The rates of the Server API's calls: so many in each second, unlimited unless set.
final class ServerRates: Sendable {
    private struct Second {
        let limit: Int
        var number: Int64 = 0
        var calls = 0
    }

    private let seconds = Mutex<[ServerEndpoint: Second]>([:])

    func set(_ limit: Int, for endpoints: [ServerEndpoint]) {
        seconds.withLock { seconds in
            for endpoint in endpoints { seconds[endpoint] = Second(limit: limit) }
        }
    }

    func clear() { seconds.withLock { $0 = [:] } }

    /// Counts a call; returns when to come again where that is too many.
    func refusal(of endpoint: ServerEndpoint, at now: StoreTime) -> StoreTime? {
        let number = now.wholeSecond.milliseconds / 1000
        return seconds.withLock { seconds in
            guard var second = seconds[endpoint] else { return nil }
            if second.number != number { (second.number, second.calls) = (number, 0) }
            second.calls += 1
            seconds[endpoint] = second
            return second.calls > second.limit ? StoreTime(milliseconds: (number + 1) * 1000) : nil
        }
    }
}

/// The body of `POST /simulator/rates`.
struct RateRequest: Decodable, Sendable {
    /// Nil means every endpoint.
    let endpoint: ServerEndpoint?
    let perSecond: Int

    enum CodingKeys: String, CodingKey {
        case endpoint
        case perSecond = "per_second"
    }
}

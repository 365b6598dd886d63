import Postgres
import SQL

extension LedgerOrders {
    /// The most orders that one statement expires, and the most requests that it forgets.
    private static let expiredMax: Int32 = 1_000

    /// Expires open orders whose time is over, and forgets old Idempotency-Keys, those of grants too. Returns whether more
    /// may be left.
    @discardableResult
    package func expire() async throws -> Bool {
        let expired = try await write(Queries.expireOrders, [.int4(Self.expiredMax)])
        _ = try await write(Queries.forgetOrderRequests, [.int4(Self.expiredMax)])
        _ = try await write(Queries.forgetGrantRequests, [.int4(Self.expiredMax)])
        return expired.count == Int(Self.expiredMax)
    }
}

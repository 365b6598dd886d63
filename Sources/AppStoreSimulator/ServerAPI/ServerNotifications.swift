import Foundation

/// Get Notification History, and the test notification.
extension Simulator {
    private static let dayMilliseconds: Int64 = 86_400_000
    private static let pageMax = 20

    private struct HistoryRequest: Decodable {
        let startDate: Int64?
        let endDate: Int64?
        let notificationType: String?
        let notificationSubtype: String?
        let transactionId: String?
        let onlyFailures: Bool?

        func admits(_ made: MadeNotification, in ids: Set<String>?, from start: Int64, to end: Int64) -> Bool {
            let occasion = made.occasion
            return (start..<end).contains(occasion.at.milliseconds)
                && (notificationType.map { $0 == occasion.name.type } ?? true)
                && (notificationSubtype.map { $0 == occasion.name.subtype } ?? true)
                && (ids.map { $0.contains(occasion.originalTransactionID ?? "") } ?? true)
                && (onlyFailures != true || made.hasFailed)
        }
    }

    func notificationHistory(_ call: ServerCall) throws -> SimulatorReply {
        let wanted = try call.read(HistoryRequest.self)
        let (start, end) = try checked(wanted, at: call.environment)
        var ids: Set<String>?
        if let id = wanted.transactionId {
            let account = try account(named: id, call)
            ids = Set(SignedTransaction.one(id, of: account, in: world).map { [$0.originalID] } ?? [])
        }
        let token = call.values("paginationToken").first
        let first = try token.map { token throws(ServerError) in
            guard let number = Data(base64Encoded: token).flatMap({ Int(String(decoding: $0, as: UTF8.self)) }) else {
                throw .invalidPage
            }
            return number
        }
        collectNotifications()
        let found = notifications.made(from: first ?? 0).filter { made in
            made.occasion.environment == call.environment && wanted.admits(made, in: ids, from: start, to: end)
        }
        let page = try found.prefix(Self.pageMax).map { (made: $0, text: try signedPayload(of: $0)) }
        let rest = found.dropFirst(Self.pageMax).first
        return .server { json in
            json.array("notificationHistory") { json in
                for (made, text) in page {
                    json.object { $0.write(made, text) }
                }
            }
            json.boolean("hasMore", rest != nil)
            if let rest { json.text("paginationToken", Data(String(rest.sequence).utf8).base64EncodedString()) }
        }
    }

    /// Returns the instants between which notifications are wanted.
    private func checked(
        _ wanted: HistoryRequest, at environment: StoreEnvironment
    ) throws(ServerError) -> (start: Int64, end: Int64) {
        guard let start = wanted.startDate, start >= 0 else { throw .invalidStart }
        guard let end = wanted.endDate, end >= 0 else { throw .invalidEnd }
        guard start <= end else { throw .startAfterEnd }
        let days: Int64 =
            switch environment {
            case .production: 180
            case .sandbox: 30
            }
        guard start >= clock.now.milliseconds - days * Self.dayMilliseconds else { throw .startTooOld }
        guard wanted.transactionId == nil || wanted.notificationType == nil else { throw .severalFilters }
        guard wanted.notificationType.map(NotificationName.types.contains) ?? (wanted.notificationSubtype == nil)
        else { throw .invalidNotificationType }
        return (start, end)
    }

    func requestTest(_ call: ServerCall) throws -> SimulatorReply {
        guard notifications.options != nil else { throw ServerError.noAddress }
        let occasion = NotificationOccasion(
            source: .test(notifications.nextTest()), name: NotificationName("TEST"), at: now, account: nil,
            environment: call.environment, transactionID: nil, originalTransactionID: nil)
        let next = notifications.made().last.map { $0.sequence + 1 } ?? 0
        notifications.add([occasion], until: StoreTime(milliseconds: 0))
        guard let made = notifications.made(from: next).first(where: { $0.occasion.source == occasion.source }) else {
            throw ServerError.noAddress
        }
        return .server { $0.text("testNotificationToken", "\(made.uuid)_\(occasion.at.milliseconds)") }
    }

    func testStatus(_ call: ServerCall) throws -> SimulatorReply {
        let parts = call.arguments[0].split(separator: "_")
        guard parts.count == 2, UUID(uuidString: String(parts[0])) != nil, Int64(parts[1]) != nil else {
            throw ServerError.invalidTestToken
        }
        guard let made = notifications.notification(String(parts[0])),
            made.occasion.at.milliseconds == Int64(parts[1])
        else { throw ServerError.testNotFound }
        let text = try signedPayload(of: made)
        return .server { $0.write(made, text) }
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ made: MadeNotification, _ signedPayload: String) {
        text("signedPayload", signedPayload)
        array("sendAttempts") { json in
            for attempt in made.attempts {
                json.object { json in
                    json.number("attemptDate", attempt.at.milliseconds)
                    json.text("sendAttemptResult", attempt.result.rawValue)
                }
            }
        }
    }
}

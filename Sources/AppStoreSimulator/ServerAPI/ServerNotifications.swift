import Foundation

/// The test notification.
extension Simulator {
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

import NIOPosix

/// The making and sending of notifications.
extension Simulator {
    /// Notifications of one account are sent one after the other, those of many accounts at once.
    private static let lanes = 32
    private static let pauseMilliseconds: Int64 = 20

    /// Makes notifications of everything that has happened until now.
    func collectNotifications() {
        guard let start = notifications.collectsSince else { return }
        let moment = now
        notifications.add(accounts().flatMap { $0.occasions(since: start) }, until: moment)
    }

    /// Sends notifications until the task is cancelled. An answer that does not come holds up one lane only.
    func notify(on group: MultiThreadedEventLoopGroup) async {
        let courier = NotificationCourier(group: group)
        let lanes = (0..<Self.lanes).map { _ in AsyncStream.makeStream(of: Due.self) }
        await withTaskGroup(of: Void.self) { tasks in
            for lane in lanes {
                tasks.addTask {
                    for await due in lane.stream { await self.send(due.delivery, of: due.notification, by: courier) }
                }
            }
            await dispatch(to: lanes.map(\.continuation))
            tasks.cancelAll()
        }
    }

    private typealias Due = (delivery: Delivery, notification: MadeNotification)

    /// Gives what is due to the lanes until the task is cancelled.
    private func dispatch(to lanes: [AsyncStream<Due>.Continuation]) async {
        while !Task.isCancelled {
            let began = ContinuousClock.now
            collectNotifications()
            for due in notifications.takeDue(at: now) {
                lanes[(due.notification.occasion.account ?? 0) % Self.lanes].yield(due)
            }
            // A store with many customers is not looked at all the time.
            let pause = max(.milliseconds(Self.pauseMilliseconds), (ContinuousClock.now - began) * 4)
            guard (try? await Task.sleep(for: pause)) != nil else { return }
        }
    }

    private func send(
        _ delivery: Delivery, of notification: MadeNotification, by courier: NotificationCourier
    ) async {
        guard let options = notifications.options, let address = NotificationAddress(options.url) else { return }
        guard !notification.isDropped else { return notifications.note(.noResponse, of: delivery, at: now) }
        do {
            guard let body = try body(of: notification, options.version) else { return }
            notifications.note(await courier.post(body, to: address), of: delivery, at: now)
        } catch {
            notifications.note(.invalidResponse, of: delivery, at: now)
        }
    }
}

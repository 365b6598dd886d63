import Logging
import Synchronization

/// The server's limit on connections, in total and for each source address.
///
/// At the limit, the connection that has been silent longest is closed for a new one, so that idle connections keep no
/// caller out. A new connection is refused only where every other one waits for its response.
final class ConnectionLimit: Sendable {
    /// The limit that is reached: the total, or the share of one address.
    fileprivate enum Place: Hashable {
        case everywhere
        case address(SourceAddress)
    }

    /// The events while a limit was reached.
    fileprivate struct LimitEpisode {
        let since = ContinuousClock.now
        var ended = 0
        var refused = 0
    }

    fileprivate struct State {
        var open: [ObjectIdentifier: OpenConnection] = [:]
        var countBySource: [SourceAddress: Int] = [:]
        var crowds: [Place: LimitEpisode] = [:]
    }

    /// The most connections at the same time.
    let connectionsMax: Int
    /// The most connections from one source address. It is half of the total, because a reverse proxy is one address.
    let perAddressMax: Int
    private let logger: Logger
    private let state = Mutex(State())

    /// Creates a limit of `connectionsMax` connections. The log says when a limit is reached, and when there is room
    /// again.
    init(connectionsMax: Int, logger: Logger) {
        self.connectionsMax = connectionsMax
        perAddressMax = max(1, connectionsMax / 2)
        self.logger = logger
    }

    /// Admits a connection. Returns false when there is no room for it.
    func admit(_ connection: OpenConnection) -> Bool {
        let (isWelcome, silent, crowded) = state.withLock { state -> (Bool, OpenConnection?, Place?) in
            guard let place = fullPlace(for: connection.source, state) else {
                state.add(connection)
                return (true, nil, nil)
            }
            let isNew = state.crowds[place] == nil
            let silent = state.takeLongestSilent(in: place)
            state.crowds[place, default: LimitEpisode()].ended += silent == nil ? 0 : 1
            state.crowds[place, default: LimitEpisode()].refused += silent == nil ? 1 : 0
            if silent != nil { state.add(connection) }
            return (silent != nil, silent, isNew ? place : nil)
        }
        silent?.close()
        if let crowded { warn(of: crowded) }
        return isWelcome
    }

    /// Removes a closed connection.
    func leave(_ connection: OpenConnection) {
        let over = state.withLock { state -> [(Place, LimitEpisode)] in
            guard state.remove(connection) else { return [] }
            let relieved = [Place.everywhere, .address(connection.source)].filter { hasRoomAgain($0, state) }
            return relieved.compactMap { place in state.crowds.removeValue(forKey: place).map { (place, $0) } }
        }
        for (place, crowd) in over { tellEnd(of: crowd, in: place) }
    }

    private func fullPlace(for source: SourceAddress, _ state: State) -> Place? {
        if state.countBySource[source, default: 0] >= perAddressMax { return .address(source) }
        return state.open.count >= connectionsMax ? .everywhere : nil
    }

    /// Returns whether the place is an eighth below its limit, so that the log does not report each connection.
    private func hasRoomAgain(_ place: Place, _ state: State) -> Bool {
        switch place {
        case .everywhere: state.open.count <= connectionsMax * 7 / 8
        case .address(let source): state.countBySource[source, default: 0] <= perAddressMax * 7 / 8
        }
    }

    private func warn(of place: Place) {
        let advice = "for each new one the one that is silent longest is ended; raise the limit of open files for more"
        switch place {
        case .everywhere:
            logger.warning("all connections are taken: \(advice)", metadata: ["connections": "\(connectionsMax)"])
        case .address(let source):
            logger.warning(
                "one address has its share of connections: \(advice)",
                metadata: ["address": "\(source)", "connections": "\(perAddressMax)"])
        }
    }

    private func tellEnd(of crowd: LimitEpisode, in place: Place) {
        var facts: Logger.Metadata = [
            "ended": "\(crowd.ended)", "refused": "\(crowd.refused)",
            "seconds": "\((ContinuousClock.now - crowd.since).components.seconds)",
        ]
        if case .address(let source) = place { facts["address"] = "\(source)" }
        logger.info("there is room for connections again", metadata: facts)
    }
}

extension ConnectionLimit.State {
    fileprivate mutating func add(_ connection: OpenConnection) {
        open[ObjectIdentifier(connection)] = connection
        countBySource[connection.source, default: 0] += 1
    }

    /// Removes a connection. Returns false when it was removed before or never admitted.
    @discardableResult
    fileprivate mutating func remove(_ connection: OpenConnection) -> Bool {
        guard open.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return false }
        let left = countBySource[connection.source, default: 0] - 1
        countBySource[connection.source] = left > 0 ? left : nil
        return true
    }

    /// Removes and returns the connection that has been silent longest, or nil when none is silent.
    fileprivate mutating func takeLongestSilent(in place: ConnectionLimit.Place) -> OpenConnection? {
        while let (connection, silence) = longestSilence(in: place) {
            guard connection.give(up: silence) else { continue }
            remove(connection)
            return connection
        }
        return nil
    }

    private func longestSilence(in place: ConnectionLimit.Place) -> (OpenConnection, UInt64)? {
        var longest: (OpenConnection, UInt64)?
        for connection in open.values {
            if case .address(let source) = place, connection.source != source { continue }
            guard let silence = connection.silence, silence < longest?.1 ?? .max else { continue }
            longest = (connection, silence)
        }
        return longest
    }
}

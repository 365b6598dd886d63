import Testing

@Suite("Each room imports only what its wall allows")
struct WallTests {
    @Test("A room imports only what its wall lets through", arguments: Wall.rooms.keys.sorted())
    func imports(room: String) throws {
        let wall = try #require(Wall.rooms[room])
        // A file is in the smallest room around it.
        let inside = Wall.rooms.keys.filter { $0.hasPrefix("\(room)/") }
        for (file, source) in try SourceTree.swiftSources()
        where file.path.hasPrefix("\(room)/") && !inside.contains(where: { file.path.hasPrefix("\($0)/") }) {
            let strangers = importedModules(in: source).filter { !wall.allows($0) }
            #expect(strangers.isEmpty, "\(file.path) may not import \(strangers)")
        }
    }

    @Test("Every room has a wall")
    func everyRoomIsNamed() throws {
        let rooms = Set(
            try SourceTree.here.files(in: "Sources", ending: [""]).map { file in
                file.path.split(separator: "/").prefix(2).joined(separator: "/")
            })
        #expect(!rooms.isEmpty)
        #expect(rooms.subtracting(Wall.rooms.keys).isEmpty, "add these to Wall.rooms, or remove them")
    }

    @Test("The executable's wall is open, the others are not")
    func openings() throws {
        #expect(Wall.rooms["Sources/perennial"]?.allows("Yams") == true)
        #expect(Wall.rooms["Sources/Subscriptions"]?.allows("Foundation") == false)
        #expect(Wall.rooms["Sources/AppStore"]?.allows("NIOHTTP1") == true)
        #expect(Wall.rooms["Sources/AppStore"]?.allows("Tracking") == false)
        #expect(Wall.rooms["Sources/AppStoreSimulator"]?.allows("AppStore") == false)
        #expect(Wall.rooms["Sources/Tracking"]?.allows("AsyncHTTPClient") == false)
        #expect(Wall.rooms["Sources/Tracking"]?.allows("Hummingbird") == false)
    }
}

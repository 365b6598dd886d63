extension DecisionTable {
    /// The periods that matter at one instant.
    struct View {
        /// The live period in progress that ends last.
        var running: Int?
        /// The live period that ends last, in progress or not.
        var head: Int?
        /// The refunded or revoked period that starts last.
        var refunded: Int?
        /// The replaced period that starts last.
        var replaced: Int?
    }

    /// Returns the view at an instant, found by examining every period.
    func view(at instant: Instant) -> View {
        var view = View()
        for (index, stretch) in stretches.enumerated() where isVisible(index, at: instant) {
            if stretch.isVoid(at: instant) {
                note(index, in: &view)
                continue
            }
            view.head = endingLast(view.head, index)
            if stretch.purchasedAt <= instant && instant < stretch.expiresAt {
                view.running = endingLast(view.running, index)
            }
        }
        return view
    }

    /// Returns whether a period exists at an instant.
    func isVisible(_ index: Int, at instant: Instant) -> Bool {
        instant >= facts.asOf || stretches[index].purchasedAt <= instant
    }

    /// Records a period that no longer counts.
    func note(_ index: Int, in view: inout View) {
        if stretches[index].isUpgraded {
            view.replaced = max(view.replaced ?? index, index)
        } else {
            view.refunded = max(view.refunded ?? index, index)
        }
    }

    /// Returns the period that ends later; of two with the same end, the one that starts later.
    private func endingLast(_ known: Int?, _ index: Int) -> Int {
        guard let known else { return index }
        return (stretches[known].expiresAt, known) < (stretches[index].expiresAt, index) ? index : known
    }
}

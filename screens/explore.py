"""Explore: how long a collective takes on a machine by every algorithm, what limits it, and how that compares with a measured log."""

from __future__ import annotations

import streamlit as st

from algorithms.collectives import collective
from screens import explore_runs as runs
from screens.explore_inputs import scenario
from screens.explore_log import uploaded
from screens.explore_url import AUTO
from screens.shared import errors_at, language
from topologies.units import format_bytes
from views import charts, explored
from views.text import label, text

lang = language()
chosen = scenario()
dark = st.context.theme.type == "dark"
where = label(lang, "explore.topology", chosen.topology)

with errors_at(where):
    gpus = runs.gpus_of(chosen, lang)
    rows, skipped = runs.curve(chosen, text(lang, "explore.running", n=gpus))
    here = next(row for row in rows if row.size_bytes == chosen.nbytes)
    usable = {c.algorithm: c for c in here.candidates}
    shown = usable.get(chosen.algorithm, here.best)
    # With a switch that adds up, less data has to move: what is impossible for all is what is impossible with its help.
    helped = any(runs.in_network(chosen, name) for name in usable)
    asked = chosen.topology, chosen.params, chosen.collective
    bound = runs.bound(*asked, chosen.nbytes, runs.in_network(chosen, shown.algorithm), shown.algorithm)
    floor = {
        nbytes: runs.bound(*asked, nbytes, helped, shown.algorithm if len(usable) == 1 else "")
        for nbytes in (rows[0].size_bytes, chosen.nbytes, rows[-1].size_bytes)
    }
    picture, reason = runs.picture(chosen, shown.algorithm, lang, dark)

for column, fact in zip(st.columns(5), explored.cards(here, shown, bound, lang), strict=True):
    column.metric(fact.label, fact.value, help=fact.help, border=True)
st.markdown(f"{reason.sentence} {reason.bound}")
if gpus > runs.ALL_UP_TO:
    st.caption(text(lang, "explore.some", n=runs.ALL_UP_TO))

factor = collective(chosen.collective).busbw_factor(gpus)
left, right = st.columns(2, gap="medium")
under = st.container()
st.subheader(text(lang, "explore.map"), anchor=False)
names = [AUTO, *usable]
if st.session_state["explore.algorithm"] not in names:
    st.session_state["explore.algorithm"] = AUTO
st.pills(
    text(lang, "explore.shown"), names, key="explore.algorithm", required=True,
    format_func=lambda name: text(lang, "explore.auto") if name == AUTO else label(lang, "algorithm", name),
)  # fmt: skip
st.image(picture, width="stretch", alt=reason.sentence.replace("*", ""))

table, how = st.columns(2, gap="medium")
with table:
    st.subheader(text(lang, "explore.table", size=format_bytes(chosen.nbytes)), anchor=False)
    st.table(explored.comparison_cells(here, lang), border="horizontal", hide_index=True)
    st.download_button(
        text(lang, "explore.csv"), lambda: explored.rows_csv(rows), file_name=f"ringscope_{chosen.topology}_{chosen.collective}.csv",
        mime="text/csv", on_click="ignore",
    )  # fmt: skip
    if skipped:
        st.caption(explored.skipped_words(skipped, lang))
with how:
    st.subheader(text(lang, "explore.log.title"), anchor=False)
    measured = uploaded(chosen, gpus, factor, lang, dark)
    with st.expander(text(lang, "explore.how")):
        st.markdown(text(lang, "explore.how_text"))
        if reason.formula:
            st.markdown(reason.formula)

look = charts.Look(chosen.nbytes, shown.algorithm, lang, dark)
with left:
    st.altair_chart(
        charts.time_chart(rows, floor, look, measured), width="stretch", key="explore.time",
        alt=charts.alt_text(rows, floor, chosen.nbytes, "time", lang),
    )  # fmt: skip
with right:
    if factor is not None:
        st.altair_chart(
            charts.busbw_chart(rows, floor, factor, look, measured), width="stretch", key="explore.busbw",
            alt=charts.alt_text(rows, floor, chosen.nbytes, "busbw", lang),
        )  # fmt: skip
if measured:
    under.caption(text(lang, "explore.log.overlay"))

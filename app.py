"""The web app: navigation over the pages; computes nothing. Start it with ``streamlit run app.py``."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from screens.shared import language
from views.text import text

HERE = Path(__file__).parent

# A local icon: with a font icon alone the browser would fetch the favicon from the network.
st.set_page_config(page_title="ringscope", page_icon=str(HERE / "views" / "assets" / "icon.svg"), layout="wide")
lang = language()
st.navigation(
    [
        st.Page(HERE / "screens" / "teach.py", title=text(lang, "page.teach"), icon=":material/school:", default=True),
        st.Page(HERE / "screens" / "explore.py", title=text(lang, "page.explore"), icon=":material/query_stats:", url_path="explore"),
    ],
    position="top",
).run()
